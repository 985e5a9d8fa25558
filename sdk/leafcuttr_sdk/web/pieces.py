"""Answers over HTTP/2, in pieces that a client has to take in time.

Over HTTP/1.1 the connection itself sees that nothing leaves. Over HTTP/2 hypercorn keeps what a client has not opened
its window for, without end in size and in time. So each piece has to leave before there is a next one, and a client
that does not let it is cut.
"""

import trio
from hypercorn.protocol.h2 import StreamBuffer

from leafcuttr_sdk.web.asgi import Message, Scope, Send
from leafcuttr_sdk.web.connection import PIECE, connection_of


def in_pieces(scope: Scope, send: Send) -> Send:
    """The same `send`; over HTTP/2 one that returns when what it was given has left, and cuts the connection of a
    client that has not taken a piece in time."""
    if scope["http_version"][0] == "1":
        return send
    connection = connection_of(scope)
    buffer: StreamBuffer | None = None

    async def send_piece(message: Message) -> None:
        nonlocal buffer
        buffer = buffer or connection.buffer_of(scope)
        with trio.move_on_after(connection.send_s) as waiting:
            await send(message)
            if buffer is not None and buffer.buffer:
                await buffer.drain()
        if waiting.cancelled_caught:
            connection.cut()
            await trio.lowlevel.checkpoint()  # which is cancelled with the connection

    async def send_all(message: Message) -> None:
        body = message.get("body", b"") if message["type"] == "http.response.body" else b""
        end = max(len(body) - PIECE, 0)
        for start in range(0, end, PIECE):
            piece = body[start : min(start + PIECE, end)]
            await send_piece({"type": "http.response.body", "body": piece, "more_body": True})
        await send_piece({**message, "body": body[end:]} if end else message)

    return send_all
