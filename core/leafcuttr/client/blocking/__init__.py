"""The client for code that blocks: `leafcuttr_sdk.blocking_peers` on top of `RemotePeer`, whose loop of trio runs in a
thread of its own (`loop`). The SDK finds `open_blocking_peer` by an entry point."""
