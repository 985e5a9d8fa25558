"""Circles of flows that keep names."""

from __future__ import annotations

import re

import pytest

from leafcuttr_forward.mm2.circles import Link, circles
from leafcuttr_forward.mm2.patterns import java_pattern


def link(pair: str, *expressions: str, exclude: str = "(?!)") -> Link:
    source, target = pair.split("->")
    pattern = re.compile(java_pattern(expressions))

    def fit(name: str) -> bool:
        return pattern.fullmatch(name) is not None and not re.fullmatch(exclude, name)

    return Link(source, target, expressions, fit)


@pytest.mark.parametrize(
    ("there", "back", "refused"),
    [
        ([".*"], [".*"], True),
        (["orders"], ["orders"], True),
        (["orders"], ["bills"], False),
        (["orders"], ["ord.*"], True),
        (["orders"], ["ord"], False),
        ([r"eu\..*"], [r"us\..*"], False),
        (["eu-.*"], ["eu.*"], True),
        (["eu.*"], ["eua*"], True),
        (["eux?"], ["eu"], True),
        (["eux?.*"], ["eua.*"], True),
        ([".*-eu"], [".*-us"], False),
        ([".*-eu"], [".*u"], True),
        ([r".*\.eu"], [r".*\.us"], False),
        (["a|b.*"], ["c.*"], True),
        (["orders", "bills"], ["goods", "bills"], True),
        ([], [".*"], False),
        ([r".*\d"], [r".*\w"], True),
    ],
)
def test_both_ways(there: list[str], back: list[str], refused: bool) -> None:
    found = list(circles([link("a->b", *there), link("b->a", *back)]))
    assert bool(found) == refused
    assert len(found) <= 1


def test_what_is_excluded_is_not_shared() -> None:
    assert not list(circles([link("a->b", "orders"), link("b->a", ".*", exclude="orders")]))


def test_three_clusters() -> None:
    ring = [link("a->b", ".*"), link("b->c", ".*"), link("c->a", "orders")]
    (found,) = circles(ring)
    assert [(one.source, one.target) for one in found] == [("a", "b"), ("b", "c"), ("c", "a")]
    assert not list(circles(ring[:2]))
    assert not list(circles([*ring[:2], link("a->c", ".*")]))
    # Each two of them share a topic, but for the first and the last.
    assert not list(circles([link("a->b", "x.*"), link("b->c", ".*"), link("c->a", "y.*")]))
