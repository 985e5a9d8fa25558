"""Filters of settings in a broker: on produce, by clients and plugins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.testing import running_broker


def test_chained_by_name(tmp_path: Path) -> None:
    settings = {
        "lc.record.filter.cards": "mask patterns=card keep=4",
        "lc.record.filter.flat": "flatten delimiter=_",
        "lc.record.filter.once": "dedupe by=field field=order_id",
        "lc.record.filter.elsewhere": "route regex=(.*) replacement=$1-x",
        "lc.filters.orders-*": "cards,flat,once",
    }
    with running_broker(tmp_path, settings) as broker:
        broker.create_topic("orders-1")
        for value in (
            {"order": {"id": 1}, "paid": "4111111111111111"},
            {"order": {"id": 1}},
            {"order": {"id": 2}},
        ):
            broker.produce("orders-1", json.dumps(value))
        broker.produce("orders-1", "no json")
        found = [json.loads(one.value or b"") for one in broker.consume("orders-1", count=2)]
        assert found == [{"order_id": 1, "paid": "************1111"}, {"order_id": 2}]
        (letter,) = broker.consume("orders-1.dlq", count=1)
        assert (letter.value, dict(letter.headers)["lc.dead.letter.reason"]) == (
            b"no json",
            b"flatten: it is no JSON",
        )
        broker.create_topic("routed", configs={"lc.filters": "elsewhere"})
        with pytest.raises(BrokerError, match="route sends records to another topic, which a relay can do"):
            broker.produce("routed", "x")
