"""Pickles: what is large is made and read in a worker thread, and what is too large is given up."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.plugins.worker_processes.pickling import AT_ONCE, pickled, unpickled

_threads: list[int] = []


def _note() -> int:
    _threads.append(threading.get_ident())
    return 1


class Noted:
    """Notes the thread in which it is pickled, and read."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        _note()
        return _note, ()


async def written(thing: object, most: int = 1 << 30) -> bytearray:
    made = await pickled(thing, most)
    assert made is not None
    chunks, size = made
    whole = bytearray(b"".join(chunks))
    assert len(whole) == size
    return whole


@pytest.mark.parametrize(
    ("filler", "at_once"), [(b"x" * 100, True), (b"x" * 2 * AT_ONCE, False), ([1.5] * AT_ONCE, False)]
)
async def test_large_ones_are_for_a_worker_thread(filler: object, at_once: bool) -> None:
    _threads.clear()
    data = await written((filler, Noted()))
    assert await unpickled(data) == (filler, 1)
    assert len(_threads) == 2
    assert [ident == threading.get_ident() for ident in _threads] == [at_once, at_once]


async def test_one_that_is_too_large() -> None:
    size = len(pickle.dumps(b"x" * 1000, pickle.HIGHEST_PROTOCOL))
    assert await pickled(b"x" * 1000, size) is not None
    assert await pickled(b"x" * 1000, size - 1) is None
    assert await pickled(b"x" * 2 * AT_ONCE, 2 * AT_ONCE) is None
    assert await pickled(b"x" * 2 * AT_ONCE, 3 * AT_ONCE) is not None


async def test_what_cannot_be_pickled() -> None:
    for thing in (threading.Lock(), [b"x" * 2 * AT_ONCE, threading.Lock()]):
        with pytest.raises(TypeError, match="cannot pickle"):
            await pickled(thing, 1 << 30)
    for data in (bytearray(b""), bytearray(b"\x80"), bytearray(2 * AT_ONCE)):
        with pytest.raises((EOFError, pickle.UnpicklingError)):
            await unpickled(data)


THINGS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(thing=THINGS, filler=st.sampled_from([0, AT_ONCE]))
def test_what_is_written_is_read(thing: object, filler: int) -> None:
    import trio

    async def main() -> None:
        assert await unpickled(await written((thing, b"x" * filler))) == (thing, b"x" * filler)

    trio.run(main)
