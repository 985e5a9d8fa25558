"""What can be called in another process, and how it is found there."""

from __future__ import annotations

import math
import sys
import types
import zlib
from functools import partial
from typing import Any

import pytest

from leafcuttr.plugins.worker_processes.functions import FunctionPlace, place_of
from leafcuttr_sdk import WorkerTransferError
from support import worker_functions as functions

OURS = "support.worker_functions"


@pytest.mark.parametrize(
    ("function", "place"),
    [
        (functions.add, FunctionPlace(OURS, "add")),
        (math.factorial, FunctionPlace("math", "factorial")),
        (zlib.crc32, FunctionPlace("zlib", "crc32")),
    ],
)
def test_functions_of_modules(function: Any, place: FunctionPlace) -> None:
    assert place_of(function) == place


class Callable:
    def __call__(self) -> None: ...


def in_main() -> None: ...


in_main.__module__ = "__main__"


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda: None, "is not what the module .* has under that name"),
        (functions.outer(), r"outer.<locals>.inner is not what the module"),
        (functions.Owner().method, "Owner.method is not what the module"),
        (functions.Owner.static, "Owner.static is not what the module"),
        (functions.never, "is an async function: a worker process has no event loop"),
        (partial(functions.add, 1), "has no name in a module: pass a function that a module defines"),
        (Callable(), "has no name in a module"),
        (
            in_main,
            "in_main is defined in __main__, which a worker process cannot import: move it to a module",
        ),
    ],
)
def test_what_is_refused(function: Any, why: str) -> None:
    with pytest.raises(WorkerTransferError, match=why) as raised:
        place_of(function)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 400


def test_one_that_was_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    before = functions.add
    monkeypatch.setattr(functions, "add", lambda a, b: a - b)
    with pytest.raises(WorkerTransferError, match=f"{OURS}.add is not what the module {OURS} has"):
        place_of(before)


def test_how_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, path, top = place_of(functions.add).loading
    assert (module, name, path) == (OURS, "add", sys.path)
    assert top is None or top[0] == "support"
    made = types.ModuleType("made_by_hand")
    made.one = partial  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_by_hand", made)
    assert FunctionPlace("made_by_hand", "one").loading[3] is None
    _, _, _, top = FunctionPlace("leafcuttr.cli", "main").loading
    assert top is not None and top[0] == "leafcuttr" and top[1].endswith("leafcuttr/__init__.py")
    assert top[2] == [top[1].removesuffix("/__init__.py")]
