"""Bulk uploads: a record a line (application/x-ndjson), an answer a line, in the same order, while the upload goes on.

A line is the object that stands in `records` of `application/json`. A line that is wrong gets an error as its answer;
the others are stored. Memory is bounded by a piece of lines: what has been read is stored and answered before more is
read, so a client that does not take its answers is not read either, and cut after the request timeout.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Final

import trio

from leafcuttr_http import envelope
from leafcuttr_http.errors import ApiError
from leafcuttr_http.negotiation import JSON, LINES, choose
from leafcuttr_http.produce import Result, render, render_error, store
from leafcuttr_http.proxy import Proxy
from leafcuttr_http.records import TEXT_KEYS, convert
from leafcuttr_sdk.records import Produced, Record
from leafcuttr_sdk.web.exchange import Exchange

_LINES: Final = 500
_BYTES: Final = 256 * 1024
_BLANK: Final = b" \t\r"

Line = tuple[Record, int | None] | ApiError


async def produce(proxy: Proxy, exchange: Exchange, topic: str, partition: int | None) -> int:
    """Returns how many records were stored. Raises ApiError for what is wrong before the first line."""
    if exchange.header(b"idempotency-key") is not None:
        raise ApiError(42208, "A bulk upload cannot have an Idempotency-Key.")
    choose(exchange.header(b"accept"), (LINES, JSON))
    answers = _Answers(exchange)
    stored = 0
    try:
        async for piece in _pieces(exchange.pieces(), proxy.limits.record_bytes):
            if proxy.closing.is_set():
                raise ApiError(503, "The broker is stopping.")
            if not piece:
                await trio.lowlevel.checkpoint()
                continue
            with trio.fail_after(proxy.limits.request_s):
                results = await _store(proxy, topic, partition, piece)
            stored += sum(1 for result in results if isinstance(result, Produced))
            await answers.send(results)
    except ApiError as error:
        if not exchange.status:
            raise
        await answers.fail(error)
    except trio.TooSlowError:
        late = ApiError(50003, "The records were not stored in time; some of them may still be.")
        if not exchange.status:
            raise late from None
        await answers.fail(late)
    else:
        await answers.end()
    return stored


class _Answers:
    """The answer: its head with the first lines, a line for each record."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def send(self, results: "list[Result | ApiError]") -> None:
        await self._begin()
        lines = [
            render_error(result.code, str(result)) if isinstance(result, ApiError) else render(result)
            for result in results
        ]
        body = "\n".join([*lines, ""]).encode()
        await self._exchange.send({"type": "http.response.body", "body": body, "more_body": True})

    async def fail(self, error: ApiError) -> None:
        """The last line says why nothing more was read."""
        await self.send([error])
        await self.end()

    async def end(self) -> None:
        await self._begin()
        await self._exchange.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self) -> None:
        if not self._exchange.status:
            fields = [(b"content-type", LINES.encode())]
            await self._exchange.send({"type": "http.response.start", "status": 200, "headers": fields})


async def _store(
    proxy: Proxy, topic: str, partition: int | None, lines: list[Line]
) -> "list[Result | ApiError]":
    good = [line for line in lines if not isinstance(line, ApiError)]
    records = [record for record, _ in good]
    partitions = [own if partition is None else partition for _, own in good]
    done = iter(await store(proxy, topic, (records, partitions)) if good else [])
    return [line if isinstance(line, ApiError) else next(done) for line in lines]


async def _pieces(body: AsyncIterator[bytes], limit: int) -> AsyncIterator[list[Line]]:
    """The lines, some at a time. Those of what has arrived are not kept back to wait for more."""
    lines = _Lines(limit)
    async for data in body:
        for piece in lines.feed(data):
            yield piece
    for piece in lines.end():
        yield piece


class _Lines:
    """Cuts bytes into lines, and lines into pieces. What is kept is one unfinished line at most."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._skipping = False
        self._number = 0

    def feed(self, data: bytes) -> Iterator[list[Line]]:
        """The pieces that are complete now."""
        self._rest += data
        begin = 0
        piece: list[Line] = []
        size = seen = 0
        while (end := self._rest.find(b"\n", max(begin, len(self._rest) - len(data)))) >= 0:
            line = self._line(self._rest[begin:end])
            size += end - begin
            begin = end + 1
            seen += 1
            if line is not None:
                piece.append(line)
            # Blank lines count too: there are a million of them in a kilobyte of gzip.
            if seen >= _LINES or size >= _BYTES:
                yield piece
                piece, size, seen = [], 0, 0
        del self._rest[:begin]
        if len(self._rest) > self._limit:
            # Its answer is due at its end; until then nothing of it is kept.
            self._rest.clear()
            self._skipping = True
        if piece:
            yield piece

    def end(self) -> Iterator[list[Line]]:
        """The last line, if it has no end of its own."""
        line = self._line(self._rest)
        if line is not None:
            yield [line]

    def _line(self, raw: bytearray) -> Line | None:
        self._number += 1
        if self._skipping or len(raw) > self._limit:
            self._skipping = False
            return ApiError(
                413,
                f"Line {self._number} has more than {self._limit} bytes (lc.http.proxy.max.record.bytes).",
            )
        if not raw.strip(_BLANK):
            return None
        try:
            return convert(envelope.parse(envelope.decode(bytes(raw)), "It"), TEXT_KEYS)
        except ApiError as error:
            return ApiError(error.code, f"Line {self._number}: {error}.".replace("..", "."))
