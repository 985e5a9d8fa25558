"""The receive buffer: frames come out as they went in, whatever the cuts, and a claimed size allocates nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.server.receive import FrameTooLarge, ReceiveBuffer

MAX_FRAME = 1 << 20


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def feed(buffer: ReceiveBuffer, data: bytes, cuts: list[int]) -> list[bytes]:
    """Hand `data` in as a socket would: as much as fits, cut at random; collect the frames."""
    frames, at, step = [], 0, 0
    while at < len(data):
        space = buffer.free_space()
        assert space, "a buffer always has space"
        count = min(len(space), len(data) - at, cuts[step % len(cuts)])
        step += 1
        space[:count] = data[at : at + count]
        buffer.received(count)
        at += count
        while (frame := buffer.next_frame()) is not None:
            frames.append(bytes(buffer.view[frame[0] : frame[1]]))
    return frames


@given(
    st.lists(st.one_of(st.binary(max_size=300), st.integers(3000, 20000).map(bytes)), max_size=20),
    st.lists(st.integers(1, 9000), min_size=1, max_size=10),
)
def test_frames_come_out_as_they_went_in(bodies: list[bytes], cuts: list[int]) -> None:
    buffer = ReceiveBuffer(MAX_FRAME)
    assert feed(buffer, b"".join(map(framed, bodies)), cuts) == bodies
    assert buffer.pending == 0


def test_a_claimed_size_allocates_nothing() -> None:
    buffer = ReceiveBuffer(100 << 20)
    before = buffer.capacity
    feed(buffer, (100 << 20).to_bytes(4, "big") + b"x" * 100, [1000])
    assert buffer.frame_size() == 100 << 20
    assert buffer.free_space()
    assert buffer.capacity == before


def test_the_buffer_grows_with_what_arrives_and_shrinks_when_idle() -> None:
    buffer = ReceiveBuffer(100 << 20)
    small = buffer.capacity
    feed(buffer, framed(bytes(3 << 20)), [1 << 20])
    assert 3 << 20 < buffer.capacity <= 8 << 20
    buffer.shrink()
    assert buffer.capacity == small


def test_requests_that_wait_together_arrive_together() -> None:
    """A peer sends as fast as it is read from: soon five requests of 16 KB fit, and none is cut off."""
    buffer, frame = ReceiveBuffer(MAX_FRAME), framed(bytes(16_300))
    waiting = b""
    for _ in range(12):
        waiting += frame * (5 - -(-len(waiting) // len(frame)))
        space = buffer.free_space()
        count = min(len(space), len(waiting))
        space[:count] = waiting[:count]
        buffer.received(count)
        waiting = waiting[count:]
        while buffer.next_frame() is not None:
            pass
    assert buffer.pending == 0
    assert buffer.capacity == 128 << 10


def test_a_full_buffer_of_small_requests_grows_to_a_limit() -> None:
    buffer = ReceiveBuffer(MAX_FRAME)
    for _ in range(100):
        feed(buffer, framed(bytes(996)) * (len(buffer.free_space()) // 1000 + 1), [1 << 20])
    assert buffer.capacity <= 128 << 10


@pytest.mark.parametrize("size", [-1, -(2**31), MAX_FRAME + 1, 2**31 - 1])
def test_an_impossible_size_is_refused(size: int) -> None:
    buffer = ReceiveBuffer(MAX_FRAME)
    with pytest.raises(FrameTooLarge, match=r"socket\.request\.max\.bytes"):
        feed(buffer, size.to_bytes(4, "big", signed=True), [4])
