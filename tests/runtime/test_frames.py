"""Frames, the packages that they are of, and their places: of code that is of packages of its own."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from traceback import walk_tb
from types import FrameType
from typing import Any

import pytest

from leafcuttr.runtime.frames import (
    first_named,
    frame_of,
    outward,
    package_in,
    package_of,
    place_in,
    place_of_thread,
    places_in,
    stack_of,
)
from support.waiting import until


def code_of(module: object, name: str) -> Callable[..., Any]:
    """A function of this module that calls what it is given, on line 3 of its file."""
    names: dict[str, Any] = {"__name__": module}
    exec(
        compile(f"\ndef {name}(call, *arguments):\n  return call(*arguments)", f"/srv/{name}.py", "exec"),
        names,
    )
    found: Callable[..., Any] = names[name]
    return found


ACME, OTHER = code_of("acme.parts", "serve"), code_of("other", "run")


def here() -> FrameType:
    return sys._getframe(1)


def caller() -> list[FrameType]:
    """Those of all that have called this, the innermost first."""
    return list(outward(here().f_back))


def test_the_package_of_a_module() -> None:
    assert [package_of(name) for name in ("acme", "acme.parts.one", "")] == ["acme", "acme", ""]


def test_frames_go_outward() -> None:
    assert list(outward(None)) == []
    frames = OTHER(ACME, caller)
    own = frames.index(here())
    assert [frame.f_code.co_name for frame in frames[:own]] == ["serve", "run"]
    assert frames[-1].f_back is None


class Unreadable:
    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("module", "package"), [("acme.parts", "acme"), ("acme", "acme"), (None, ""), (Unreadable(), "")]
)
def test_the_package_in_a_frame(module: object, package: str) -> None:
    assert package_in(code_of(module, "serve")(caller)[0]) == package


def test_the_package_in_a_frame_whose_globals_have_no_name() -> None:
    names: dict[str, Any] = {"caller": caller}
    exec("frames = caller()", names)
    assert names["frames"][0].f_globals is names and "__name__" not in names
    assert package_in(names["frames"][0]) == ""


def test_the_first_name_of_those_that_some_packages_have() -> None:
    frames = OTHER(ACME, caller)
    assert first_named(frames, {"other": "o", "acme": "a"}) == "a"
    assert first_named(frames, {"other": "o"}) == "o"
    assert first_named(frames, {"acme.parts": "a", "serve": "s"}) is None
    assert first_named([], {"acme": "a"}) is None


def test_the_first_name_of_a_traceback_is_of_the_code_that_was_called_first() -> None:
    with pytest.raises(ValueError, match="no") as caught:
        OTHER(ACME, int, "no")
    frames = [frame for frame, _ in walk_tb(caught.value.__traceback__)]
    assert first_named(frames, {"other": "o", "acme": "a"}) == "o"


def test_a_place() -> None:
    frame = ACME(caller)[0]
    assert place_in(frame) == "/srv/serve.py:3 in serve"


@pytest.mark.parametrize("depth", [1, 12, 13, 40])
def test_places_of_a_stack(depth: int) -> None:
    frames = [code_of("acme", f"part_{number}")(caller)[0] for number in range(depth)]
    places = [f"/srv/part_{number}.py:3 in part_{number}" for number in range(depth)]
    if depth > 12:
        places = [*places[:9], f"{depth - 12} more", *places[-3:]]
    assert places_in(frames) == " < ".join(places)


def test_the_place_of_a_thread() -> None:
    lock = threading.Lock()
    lock.acquire()
    thread = threading.Thread(target=ACME, args=(lock.acquire,), daemon=True)
    assert (thread.ident, frame_of(None), place_of_thread(thread)) == (None, None, "nowhere")
    thread.start()
    until(lambda: place_of_thread(thread) == "/srv/serve.py:3 in serve", "the thread to wait for the lock")
    lock.release()
    thread.join()
    assert place_of_thread(thread) == "nowhere"


class Watching:
    """Stands for a frame: notes whether garbage is collected when it is asked for the one outside it."""

    def __init__(self) -> None:
        self.collected: list[bool] = []

    @property
    def f_back(self) -> None:
        self.collected.append(gc.isenabled())


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_while_a_stack_of_another_thread_is_walked(
    monkeypatch: pytest.MonkeyPatch, enabled: bool
) -> None:
    """A finalizer would let that thread run in the middle, and the process end with SIGSEGV. Afterwards it is as
    before."""
    frame = Watching()
    monkeypatch.setattr(sys, "_current_frames", lambda: {7: frame})
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        assert stack_of(7) == [frame]
        assert frame.collected == [False]
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_the_stack_of_a_thread() -> None:
    began, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        began.set()
        go_on.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    began.wait()
    names = [frame.f_code.co_name for frame in stack_of(thread.ident)]
    go_on.set()
    thread.join()
    assert "wait" in names and names.index("wait") < names.index("run")
    assert stack_of(None) == []
