"""Reading a body within its limits, from what ASGI hands over."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr_sdk.testing import fixed_settings
from leafcuttr_sdk.web.asgi import Message, Receive
from leafcuttr_sdk.web.bodies import Body, BodyMemory, Gone
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.settings import read_limits, web_settings


def sending(*pieces: bytes | None, ends: bool = True) -> Receive:
    """A client that sends these pieces; None: it waits for ever. Then it leaves, if it has not ended."""
    messages: list[Message | None] = [
        None if each is None else {"type": "http.request", "body": each, "more_body": True} for each in pieces
    ]
    messages.append({"type": "http.request", "more_body": False} if ends else {"type": "http.disconnect"})

    async def receive() -> Message:
        await trio.lowlevel.checkpoint()
        message = messages.pop(0)
        if message is None:
            await trio.sleep_forever()
        assert message is not None
        return message

    return receive


def memory(size: int = 1024) -> BodyMemory:
    declared = list(web_settings("lc.x", 0))
    return BodyMemory(read_limits(fixed_settings(declared, {"lc.x.max.buffered.bytes": size}), "lc.x"))


def body(receive: Receive, **options: Any) -> Body:
    given = {
        "length": None,
        "encoding": "",
        "limit": 100,
        "timeout_s": 5.0,
        "memory": None,
        "setting": "lc.x.y",
    }
    return Body(receive, **{**given, **options})


async def test_it_is_read_whole() -> None:
    found = body(sending(b"ab", b"", b"cd"))
    assert (await found.read(), found.complete) == (b"abcd", True)
    assert await body(sending()).read() == b""


@pytest.mark.parametrize("pieces", [(b"x" * 101,), (b"x" * 60, b"x" * 60)])
async def test_one_that_is_too_large_is_not_read_to_its_end(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(ApiError, match=r"more than 100 bytes \(lc\.x\.y\)") as raised:
        await body(sending(*pieces, None)).read()
    assert raised.value.code == 413


async def test_a_length_that_is_too_large_is_enough() -> None:
    with pytest.raises(ApiError) as raised:
        await body(sending(None), length=101).read()
    assert raised.value.code == 413


async def test_one_that_is_too_slow(autojump_clock: trio.testing.MockClock) -> None:
    with pytest.raises(ApiError, match="not arrive within 5 s") as raised:
        await body(sending(b"a", None)).read()
    assert raised.value.code == 408
    pieces = body(sending(b"a", None)).pieces()
    assert await anext(pieces) == b"a"
    with pytest.raises(ApiError, match="not arrive within 5 s"):
        await anext(pieces)


async def test_a_client_that_leaves() -> None:
    with pytest.raises(Gone):
        await body(sending(b"a", ends=False)).read()


async def test_pieces_have_no_limit_in_all() -> None:
    found = body(sending(*[b"x" * 90] * 10))
    assert sum([len(piece) async for piece in found.pieces()]) == 900


@pytest.mark.parametrize("encoding", ["gzip", " X-Gzip "])
async def test_gzip(encoding: str) -> None:
    packed = gzip.compress(b"a" * 50) + gzip.compress(b"b" * 40)
    for size in (1, 7, len(packed)):
        pieces = [packed[start : start + size] for start in range(0, len(packed), size)]
        assert await body(sending(*pieces), encoding=encoding).read() == b"a" * 50 + b"b" * 40


@pytest.mark.parametrize(
    ("packed", "code"),
    [
        (gzip.compress(b"a" * 1_000_000), 413),
        (gzip.compress(b"a" * 50)[:-1], 400),
        (b"no gzip at all", 400),
        (b"", 400),
    ],
    ids=["bomb", "cut off", "no gzip", "empty"],
)
async def test_gzip_that_is_wrong_or_a_bomb(packed: bytes, code: int) -> None:
    with pytest.raises(ApiError) as raised:
        await body(sending(packed), encoding="gzip").read()
    assert raised.value.code == code


async def test_a_bomb_is_unpacked_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = zlib.decompressobj

    class Counting:
        def __init__(self, bits: int) -> None:
            self._inner = real(bits)

        def decompress(self, data: bytes, most: int) -> bytes:
            piece = self._inner.decompress(data, most)
            seen.append(len(piece))
            return piece

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    monkeypatch.setattr(zlib, "decompressobj", Counting)
    with pytest.raises(ApiError):
        await body(sending(gzip.compress(b"a" * 10_000_000)), encoding="gzip", limit=200_000).read()
    assert max(seen) <= 65_536 and sum(seen) < 400_000


def test_other_encodings_are_refused() -> None:
    assert body(sending(), encoding="identity")
    with pytest.raises(ApiError, match="'br' is not read") as raised:
        body(sending(), encoding="br")
    assert (raised.value.code, raised.value.headers) == (415, (("accept-encoding", "gzip, identity"),))


async def test_the_memory_of_all_is_bounded_and_given_back() -> None:
    shared = memory(1024)
    first = body(sending(b"x" * 600), memory=shared, limit=1000)
    await first.read()
    assert shared.taken == 600
    second = body(sending(b"x" * 300, b"x" * 200), memory=shared, limit=1000)
    with pytest.raises(ApiError, match=r"lc\.x\.max\.buffered\.bytes") as raised:
        await second.read()
    assert (raised.value.code, raised.value.headers) == (503, (("retry-after", "1"),))
    second.release()
    second.release()
    assert shared.taken == 600
    first.release()
    assert shared.taken == 0


async def test_the_rest_is_thrown_away_for_a_moment(autojump_clock: trio.testing.MockClock) -> None:
    for receive, complete in (
        (sending(b"x" * 10_000, b"y"), True),
        (sending(*[b"x" * 1_000_000] * 40), False),
        (sending(b"x", None), False),
        (sending(b"x", ends=False), False),
    ):
        found = body(receive)
        began = trio.current_time()
        await found.discard()
        assert found.complete == complete
        assert trio.current_time() - began <= 2.0
