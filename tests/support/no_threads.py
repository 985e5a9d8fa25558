"""A process that may start no more threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from trio._core._thread_cache import THREAD_CACHE

SAID = "can't start new thread"


@contextmanager
def no_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError(SAID)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        patch.setattr(THREAD_CACHE, "_idle_workers", {})
        yield
