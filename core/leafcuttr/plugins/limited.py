"""How a plugin is called while plugins are looked for: one of others within a time, on a thread of its own
(`time_limit`); a bundled one, whose import and settings are quick, at once. Most starts find no others, and need
neither the thread nor its module.
"""

from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

LIMIT_S: Final = 10.0
"""How long the import of a plugin, and each of its hooks, may take."""


def called(call: Callable[[], T], limit_s: float, package: str, *, at_once: bool) -> T:
    """What `call` returns, or raises. Raises TakesTooLong, unless it is called `at_once`. `package`: see `in_time`."""
    if at_once:
        return call()
    from leafcuttr.plugins.time_limit import in_time

    return in_time(call, limit_s, package)
