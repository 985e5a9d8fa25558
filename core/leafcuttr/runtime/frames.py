"""Where code is: frames from the innermost outward, the packages that they are of, and their places in a line.

Frames of a traceback are had by `traceback.walk_tb`. Which part of a plugin is called in some frames, says
`runtime.plugin_parts.part_in`.
"""

import gc
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Final

_INNER: Final = 9
_OUTER: Final = 3
"""How many places of a long stack are shown."""
_walking = threading.Lock()
"""Of two threads that walk at once, the first to end would have garbage collected under the other."""


def package_of(module: str) -> str:
    """The top-level package of a module."""
    return module.partition(".")[0]


def package_in(frame: FrameType) -> str:
    """The top-level package whose code it runs; empty where its globals have no name, or something else as one."""
    module: object = frame.f_globals.get("__name__")
    return package_of(module) if isinstance(module, str) else ""


def first_named(frames: Iterable[FrameType], names: Mapping[str, str]) -> str | None:
    """The name of the first package in these frames that has one in `names`; None if none has."""
    return next((name for frame in frames if (name := names.get(package_in(frame))) is not None), None)


def outward(frame: FrameType | None) -> Iterator[FrameType]:
    """The frame, the one that has called it, and so on. Of another thread that runs: `stack_of`."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def frame_of(ident: int | None) -> FrameType | None:
    """The innermost frame of another thread, by its `ident`; None if it runs no code of Python's."""
    return None if ident is None else sys._current_frames().get(ident)


def stack_of(ident: int | None) -> list[FrameType]:
    """The frames of another thread, which goes on meanwhile, from the innermost outward; empty if it runs no code of
    Python's.

    CPython makes the object of a frame when somebody reads it, from what the other thread may have left by then if a
    collection of garbage comes in between, and a finalizer lets that thread run: the process ends with SIGSEGV. So
    there is none meanwhile, as in `sys._current_frames` itself.
    """
    with _walking:
        collects = gc.isenabled()
        gc.disable()
        try:
            return list(outward(frame_of(ident)))
        finally:
            if collects:
                gc.enable()


def place_in(frame: FrameType) -> str:
    """`FILE:LINE in FUNCTION`."""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def place_of_thread(thread: threading.Thread) -> str:
    """Where another thread is now."""
    frame = frame_of(thread.ident)
    return "nowhere" if frame is None else place_in(frame)


def places_in(frames: Sequence[FrameType]) -> str:
    """The places of a stack in one line, as the frames are ordered; of a long one the middle is left out."""
    left_out = len(frames) - _INNER - _OUTER
    if left_out <= 0:
        return " < ".join(map(place_in, frames))
    places = *map(place_in, frames[:_INNER]), f"{left_out} more", *map(place_in, frames[-_OUTER:])
    return " < ".join(places)
