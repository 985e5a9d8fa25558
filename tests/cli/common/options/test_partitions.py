"""Partitions on the command line."""

from __future__ import annotations

import click
import pytest

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.options.partitions import Selection, by_topic, select, selection
from leafcuttr_sdk.types import TopicPartition


def test_partitions() -> None:
    assert selection("orders") == Selection("orders", None)
    assert selection("orders:0,2,0") == Selection("orders", (0, 2))
    for wrong in ("orders:", "orders:a", "orders:-1", ":0", "orders:0,"):
        with pytest.raises(click.BadParameter):
            selection(wrong)
    known = {"a": [0, 1], "b": [0]}
    found = select([selection("a:1"), selection("b"), selection("a")], known)
    assert found == [TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("a", 0)]
    assert by_topic(found) == {"a": [1, 0], "b": [0]}
    with pytest.raises(Failure, match="there is no topic c"):
        select([selection("c")], known)
