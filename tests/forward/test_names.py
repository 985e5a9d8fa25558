"""Names of topics: those that Kafka takes, and no others."""

from __future__ import annotations

import pytest

from leafcuttr_forward.names import check_topic


@pytest.mark.parametrize("name", ["a", "shop.orders_1-x", "...", "a" * 249])
def test_names(name: str) -> None:
    assert check_topic(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "\u00e4", "a\n", "a" * 250])
def test_what_is_none(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a topic") as raised:
        check_topic(name)
    assert str(raised.value).isprintable()
