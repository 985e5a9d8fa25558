"""The positions of MirrorMaker, as Connect stores them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_forward.mm2.leftovers import next_offset
from leafcuttr_sdk.types import TopicPartition

KEY = ["MirrorSourceConnector", {"cluster": "a", "partition": 3, "topic": "orders"}]


def test_the_next_record_is_the_one_behind_the_last() -> None:
    found = next_offset(json.dumps(KEY).encode(), b'{"offset":41}', "a")
    assert found == (TopicPartition("orders", 3), 42)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (["MirrorSourceConnector", {**KEY[1], "cluster": "b"}], {"offset": 41}),  # type: ignore[dict-item]
        (["MirrorHeartbeatConnector", {"sourceClusterAlias": "a", "targetClusterAlias": "b"}], {"offset": 0}),
        (["MirrorCheckpointConnector", {"group": "g", "partition": 3, "topic": "orders"}], {"offset": 0}),
        (KEY, {"offset": -1}),
        (KEY, {"offset": True}),
        (KEY, {"offset": None}),
        (KEY, []),
        (KEY[:1], {"offset": 41}),
        ({}, {"offset": 41}),
    ],
)
def test_what_is_something_else(key: Any, value: Any) -> None:
    assert next_offset(json.dumps(key).encode(), json.dumps(value).encode(), "a") is None


@given(st.binary(max_size=80), st.binary(max_size=40))
def test_any_bytes(key: bytes, value: bytes) -> None:
    next_offset(key, value, "a")


def test_what_is_nested_too_deeply() -> None:
    assert next_offset(b"[" * 100_000, b"{}", "a") is None
