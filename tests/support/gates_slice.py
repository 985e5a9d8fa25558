"""Which tests are in the gate: those that are not marked `long`, and of one that is marked `one_in(n)` every n-th case;
of the examples of a property an eighth, the same in each run.

All of them run under `--long`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

_SHARE = 8
_all_examples = False


def take_all_examples() -> None:
    """Before tests are collected."""
    global _all_examples
    _all_examples = True


def sampled(examples: int, *, at_least: int = 10) -> int:
    """With how many of so many examples hypothesis tries a property in this run. Of a property that is tried for each
    message of the protocol, or the like, it may be `at_least` fewer."""
    return examples if _all_examples else max(examples // _SHARE, at_least)


def divided(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Those of the gate, and the others, each in their order."""
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    seen: Counter[str] = Counter()
    for item in sorted(items, key=_place):
        # By marker: the keywords hold the names of the folders above too.
        mark = item.get_closest_marker("one_in")
        test = item.nodeid.partition("[")[0]
        is_in = item.get_closest_marker("long") is None and (mark is None or seen[test] % mark.args[0] == 0)
        seen[test] += 1
        (kept if is_in else left_out).append(item)
    order = {item: place for place, item in enumerate(items)}
    return sorted(kept, key=order.__getitem__), sorted(left_out, key=order.__getitem__)


def _place(item: pytest.Item) -> tuple[str, int]:
    """Cases of one test in the order of its parameters, whatever order the items are in."""
    found = getattr(item, "callspec", None)
    return item.nodeid.partition("[")[0], max(found.indices.values(), default=0) if found else 0
