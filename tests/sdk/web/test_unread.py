"""What has arrived of a body over HTTP/2 waits for its handler, within the window of its stream."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import trio
import trio.testing

from leafcuttr_sdk.web.unread import Unread, Waiting

END = {"type": "http.request", "body": b"", "more_body": False}
GONE = {"type": "http.disconnect"}


class Windows:
    """What a body gave back to them."""

    def __init__(self, most: int = 1000) -> None:
        self.waiting = Waiting(most)
        self.connection = 0
        self.unread = Unread(1, self.waiting, self.credit)

    async def credit(self, unread: Unread, of_connection: int) -> None:
        assert unread is self.unread
        self.connection += of_connection

    def arrives(self, data: bytes) -> None:
        self.connection += self.unread.arrived(data)

    async def put(self, event: Mapping[str, object]) -> None:
        await self.unread.put(event)  # type: ignore[arg-type]

    @property
    def given(self) -> tuple[int, int]:
        """To the window of the stream, and of the connection."""
        return self.unread.owed, self.connection


@pytest.fixture
def windows() -> Windows:
    return Windows()


async def test_the_stream_gets_back_what_its_handler_takes(windows: Windows) -> None:
    windows.arrives(b"ab")
    windows.arrives(b"")
    windows.arrives(b"c")
    assert windows.given == (0, 3) and windows.waiting.size == 3
    assert await windows.unread.receive() == {"type": "http.request", "body": b"abc", "more_body": True}
    assert windows.given == (3, 3) and windows.waiting.size == 0
    windows.arrives(b"d")
    await windows.put(END)
    assert await windows.unread.receive() == {"type": "http.request", "body": b"d", "more_body": False}
    await windows.put(GONE)
    for _ in range(2):
        assert await windows.unread.receive() == GONE


async def test_a_handler_waits_for_what_is_to_come(windows: Windows, nursery: trio.Nursery) -> None:
    got: list[object] = []

    async def read() -> None:
        for _ in range(3):
            got.append(await windows.unread.receive())

    nursery.start_soon(read)
    await trio.testing.wait_all_tasks_blocked()
    windows.arrives(b"")
    await trio.testing.wait_all_tasks_blocked()
    assert not got
    windows.arrives(b"a")
    await trio.testing.wait_all_tasks_blocked()
    assert len(got) == 1
    await windows.put(END)
    await trio.testing.wait_all_tasks_blocked()
    assert got[1:] == [END]
    await windows.put(GONE)
    await trio.testing.wait_all_tasks_blocked()
    assert got[2:] == [GONE]


async def test_a_large_one_comes_in_pieces(windows: Windows) -> None:
    windows.arrives(bytes(100_000))
    await windows.put(END)
    first, last = await windows.unread.receive(), await windows.unread.receive()
    assert (len(first["body"]), first["more_body"]) == (65_536, True)
    assert (len(last["body"]), last["more_body"]) == (100_000 - 65_536, False)


async def test_what_nobody_will_take_is_given_back(windows: Windows) -> None:
    windows.arrives(b"abc")
    await windows.unread.answered(ended=False)
    assert windows.given == (3, 3) and windows.waiting.size == 0
    windows.arrives(b"de")
    assert windows.given == (5, 5) and windows.waiting.size == 0


async def test_a_client_that_leaves_in_the_middle(windows: Windows) -> None:
    windows.arrives(b"abc")
    await windows.put(GONE)
    assert windows.waiting.size == 0
    assert await windows.unread.receive() == GONE


async def test_a_client_that_leaves_behind_a_whole_request(windows: Windows) -> None:
    windows.arrives(b"abc")
    await windows.put(END)
    await windows.put(GONE)
    assert await windows.unread.receive() == {"type": "http.request", "body": b"abc", "more_body": False}
    assert await windows.unread.receive() == GONE


async def test_where_too_much_waits_in_all_the_connection_is_held_back() -> None:
    windows = Windows(most=4)
    windows.arrives(b"abc")
    windows.arrives(b"de")
    windows.arrives(b"f")
    assert windows.given == (0, 3)
    await windows.unread.receive()
    assert windows.given == (6, 6)
    windows.arrives(b"ghijk")
    assert windows.given == (6, 6)
    await windows.unread.answered(ended=False)
    assert windows.given == (11, 11) and windows.waiting.size == 0
