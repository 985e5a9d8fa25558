"""`leafcuttr_sdk.Broker` on the real broker: what plugins call, in process, without a socket.

One module for each part of that protocol; `view` composes them. What a plugin requests is checked as what a client
sends, and appended in the same way; what would hold the loop is left to worker threads or done in short
turns. `leafcuttr.plugins` finds, configures and runs plugins.
"""
