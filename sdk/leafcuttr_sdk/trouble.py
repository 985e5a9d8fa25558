"""Trouble that passes: a process that may have no more descriptors, threads or processes, and one line in the log for
what is met again and again.

What a service imports, opens or starts because a connection or a request came may fail that connection or request
only. `import_late` does so for imports.
"""

import errno
import importlib
import logging
import os
import sys
import time
from collections.abc import Iterable
from importlib.machinery import ExtensionFileLoader
from typing import Final, cast

_QUIET_S: Final = 60.0
_MOST: Final = 256
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS)
# What CPython says where a thread cannot be started: there is no class, and no number, for it.
_NO_THREAD: Final = "can't start new thread"


class Complaints:
    """What one part of the broker has complained about. A complaint is repeated in the log once it has not been made
    for a minute: then it is a new trouble. Any thread may complain."""

    __slots__ = ("_logger", "_made")

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._made: dict[str, float] = {}

    def __call__(self, key: str, message: str, *arguments: object, level: int = logging.ERROR) -> None:
        """Log the message, unless `key` has been complained about within the last minute."""
        now = time.monotonic()
        before = self._made.get(key)
        if before is None and len(self._made) >= _MOST:
            self._made.clear()
        self._made[key] = now
        if before is None or now - before > _QUIET_S:
            self._logger.log(level, message, *arguments)


def exhausted(error: BaseException) -> str | None:
    """What the process, or the machine, has run out of if that is why this was raised; else None. The same may succeed
    later."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        reasons = [exhausted(each) for each in group.exceptions]
        return None if None in reasons else reasons[0]
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno in _EXHAUSTED else None
    if isinstance(error, RuntimeError):
        return str(error) if str(error) == _NO_THREAD else None
    if isinstance(error, ImportError):
        # An extension module: what the dynamic linker says, which has no number either.
        known = (os.strerror(each) for each in _EXHAUSTED)
        return next((reason for reason in known if str(error).endswith(reason)), None)
    return None


def import_late(*names: str) -> None:
    """Import these modules, because something has come that needs them. Raises OSError where the process may open no
    file, and what an import raises; then no half of them stays, and the next call tries again.

    Nothing is begun without a descriptor to spare: a package that can do without its extension modules would take
    them for missing, and be slow, or lack something, until the process ends.
    """
    if all(name in sys.modules for name in names):
        return
    before = set(sys.modules)
    _spare_descriptors()
    try:
        for name in names:
            importlib.import_module(name)
    except BaseException:
        _forget(sys.modules.keys() - before)
        raise


def _spare_descriptors() -> None:
    """One for the file of a module, one for what its loader opens beside it. Raises OSError."""
    for descriptor in os.pipe():
        os.close(descriptor)


def _forget(names: Iterable[str]) -> None:
    """Of a package whose import has failed its submodules stay, but are no attributes of the package that the next
    import makes; and what they have registered with each other they would not register again. Extension modules stay:
    not all of them can be loaded twice."""
    for name in names:
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        if isinstance(getattr(spec, "loader", None), ExtensionFileLoader):
            continue
        parts = name.split(".")
        if any(".".join(parts[:count]) not in sys.modules for count in range(1, len(parts))):
            sys.modules.pop(name, None)
