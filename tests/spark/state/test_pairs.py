"""Two tables joined by their key, against a plain model: both tables as dictionaries, joined anew after each change."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_spark.state.pairs import Change, Given, Pair, joined
from support.gates_slice import sampled

Kind = Literal["inner", "left"]
CHANGES = st.lists(
    st.tuples(st.integers(0, 9), st.booleans(), st.one_of(st.none(), st.integers(0, 5))), max_size=10
).map(lambda found: [Change(time, at, right, row) for at, (time, right, row) in enumerate(found)])


@pytest.mark.parametrize("kind", ["inner", "left"])
@settings(max_examples=sampled(200), deadline=None)
@given(changes=CHANGES)
def test_the_changelog_that_comes_out_makes_the_joined_table(
    kind: Kind, changes: list[Change[Any, Any]]
) -> None:
    pair, given_ = joined(Pair(), reversed(changes), kind)
    tables: list[Any] = [None, None]
    for change in sorted(changes, key=lambda one: (one.time, one.offset)):
        tables[change.is_right] = change.row
    assert pair == Pair(*tables)
    shows = tables[0] is not None and (kind == "left" or tables[1] is not None)
    now: Any = None
    for one in given_:
        assert one.is_gone == (one.left is None)
        assert not one.is_gone or now is not None, "nothing is deleted twice"
        now = None if one.is_gone else (one.left, one.right)
    assert now == (tuple(tables) if shows else None)


def test_each_change_gives_a_record() -> None:
    pair, given_ = joined(
        Pair(), [Change(1, 0, False, "a"), Change(2, 0, True, "x"), Change(3, 1, True, "y")], "inner"
    )
    assert given_ == [Given(2, "a", "x", False), Given(3, "a", "y", False)]
    pair, given_ = joined(pair, [Change(4, 2, True, None), Change(5, 3, True, None)], "inner")
    assert given_ == [Given(4, None, None, True)]
    assert joined(pair, [Change(6, 4, True, None)], "left") == (pair, []), "there is nothing to delete"
    _, given_ = joined(pair, [Change(6, 1, False, None)], "left")
    assert given_ == [Given(6, None, None, True)]
