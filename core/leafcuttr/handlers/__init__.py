"""One module per Kafka API, named as in `wire.api`: `handle(broker, context, request)` returns the response.

A handler that has to wait returns an awaitable (or is a coroutine function); one that need not wait is a plain
function, and the connection answers it without a task switch. `None` means that the request gets no answer.
"""
