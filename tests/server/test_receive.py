"""The receive buffer: frames come out as they went in, whatever the cuts, and a claimed size allocates nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.server.receive import (
    _COMFORTABLE,
    _LARGE,
    _PATIENCE,
    SMALL_FRAME,
    FrameTooLarge,
    ReceiveBuffer,
)

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
        del space  # else the buffer could not grow where it is
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


@pytest.mark.parametrize("held", [False, True])
def test_a_very_large_frame_arrives_whole_also_while_views_of_its_beginning_are_held(held: bool) -> None:
    """Without them the buffer grows where it is."""
    buffer, body, views = ReceiveBuffer(100 << 20), bytes(range(251)) * ((3 * _COMFORTABLE) // 251), []
    sent, at, copies, where = framed(body), 0, 0, None
    while at < len(sent):
        space = buffer.free_space()
        assert space
        if held:
            views.append(space)
        count = min(len(space), len(sent) - at)
        space[:count] = sent[at : at + count]
        del space
        buffer.received(count)
        at += count
        if buffer.capacity > _COMFORTABLE:
            copies, where = copies + (where is not buffer.view.obj), buffer.view.obj
    frame = buffer.next_frame()
    assert frame is not None
    assert buffer.view[frame[0] : frame[1]] == body
    assert copies == (2 if held else 1)


def test_a_frame_that_does_not_fit_behind_others_is_moved_to_the_front() -> None:
    """It needs no more than one buffer then."""
    buffer = ReceiveBuffer(MAX_FRAME)
    size = SMALL_FRAME // 2
    first, second = framed(bytes(size - 4)), framed(bytes(size))
    assert feed(buffer, first + second[:100], [1 << 20]) == [first[4:]]
    assert len(buffer.free_space()) == SMALL_FRAME - 100
    assert (buffer.start, buffer.capacity) == (0, SMALL_FRAME)
    assert feed(buffer, second[100:], [1 << 20]) == [second[4:]]


def test_a_frame_that_fits_behind_others_stays() -> None:
    buffer = ReceiveBuffer(MAX_FRAME)
    size = SMALL_FRAME // 2
    feed(buffer, framed(bytes(size - 4)) + framed(bytes(size - 4))[:100], [1 << 20])
    assert len(buffer.free_space()) == size - 100


def test_an_idle_connection_keeps_what_has_arrived() -> None:
    buffer = ReceiveBuffer(MAX_FRAME)
    begun = framed(bytes(10_000))[:9000]
    feed(buffer, begun, [1 << 20])
    grown = buffer.capacity
    buffer.shrink()
    assert buffer.capacity == grown
    assert buffer.view[buffer.start : buffer.end] == begun


@pytest.mark.parametrize("size", [0, 1, 300])
def test_a_frame_is_there_when_its_last_byte_is(size: int) -> None:
    buffer, sent = ReceiveBuffer(MAX_FRAME), framed(bytes(size))
    for number, byte in enumerate(sent, 1):
        buffer.free_space()[0] = byte
        buffer.received(1)
        assert buffer.has_frame is (number == len(sent))
    assert buffer.next_frame() == (4, len(sent))
    assert not buffer.has_frame


def test_a_large_buffer_goes_after_some_small_frames_in_a_row() -> None:
    buffer = ReceiveBuffer(100 << 20)
    large, small = framed(bytes(_COMFORTABLE)), framed(bytes(100))
    feed(buffer, large, [1 << 20])
    grown = buffer.capacity
    assert grown > _COMFORTABLE
    for _ in range(_PATIENCE):
        feed(buffer, small, [1 << 20])
    assert buffer.capacity == grown
    feed(buffer, large, [1 << 23])
    for _ in range(_PATIENCE + 1):
        feed(buffer, small, [1 << 20])
        assert buffer.capacity == grown, "those before the large one do not count"
    feed(buffer, small, [1 << 20])
    assert buffer.capacity == _COMFORTABLE


def test_a_buffer_that_no_larger_frame_has_grown_stays() -> None:
    buffer = ReceiveBuffer(100 << 20)
    feed(buffer, framed(bytes(_COMFORTABLE - 4)), [1 << 20])
    assert buffer.capacity == _COMFORTABLE
    view = buffer.view
    for _ in range(2 * _PATIENCE):
        feed(buffer, framed(b""), [1 << 20])
    assert buffer.view is view


@pytest.mark.parametrize(
    "size, behind, stays",
    [
        (_COMFORTABLE + 1, 0, True),
        (_LARGE - 4, 0, True),
        (_LARGE, 0, False),
        (_LARGE, SMALL_FRAME, False),
        (_LARGE, SMALL_FRAME + 1, True),
    ],
)
def test_only_what_a_very_large_frame_needed_is_given_back_at_once(
    size: int, behind: int, stays: bool
) -> None:
    """And what has arrived behind it is kept."""
    buffer = ReceiveBuffer(100 << 20)
    following = (1 << 20).to_bytes(4, "big") + b"x" * (behind - 4) if behind else b""
    assert feed(buffer, framed(bytes(size)) + following, [1 << 23]) == [bytes(size)]
    grown = buffer.capacity
    buffer.give_back()
    assert buffer.capacity == (grown if stays else SMALL_FRAME)
    assert buffer.view[buffer.start : buffer.end] == following


@pytest.mark.parametrize("size", [-1, -(2**31), MAX_FRAME + 1, 2**31 - 1])
def test_an_impossible_size_is_refused(size: int) -> None:
    buffer = ReceiveBuffer(MAX_FRAME)
    with pytest.raises(FrameTooLarge, match=r"socket\.request\.max\.bytes"):
        feed(buffer, size.to_bytes(4, "big", signed=True), [4])
