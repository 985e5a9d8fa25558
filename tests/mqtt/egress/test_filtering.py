"""Record filters on the way down from Kafka topics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr_mqtt.egress import filtering
from leafcuttr_mqtt.egress.filtering import Going, LeftOut, filtered
from leafcuttr_mqtt.egress.messages import Left
from leafcuttr_sdk import DROP, DeadLetter, FilterFailure, NotReady, Record, Routed, StoredRecord
from support.mqtt import running_mqtt

DOWN = {"mqtt.topic.egress.orders": "orders/{key}"}


def stored(value: bytes) -> StoredRecord:
    return StoredRecord("orders", 0, 5, 77, b"k", value, (("h", b"1"),))


class Chain:
    """A `FilterChain` that answers by what it is given."""

    names = ("f",)

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.forgotten = 0

    def filter(self, records: Sequence[Record]) -> list[Any]:
        answer = self.answers.pop(0)
        return [
            verdict if verdict is not None else one for verdict, one in zip(answer, records, strict=False)
        ]

    def forget(self) -> None:
        self.forgotten += 1

    def close(self) -> None:
        pass


async def test_what_becomes_of_records() -> None:
    records = [stored(b"%d" % number) for number in range(5)]
    chain = Chain(
        [
            None,
            Record(b"new", b"key", (), None),
            DROP,
            DeadLetter("bad", filter="f"),
            Routed(Record(b"", timestamp=3), "a/b"),
        ]
    )
    assert await filtered(chain, records, print) == [
        Going(records[0]),
        Going(records[1]._replace(value=b"new", key=b"key", headers=())),
        LeftOut(records[2], Left.FILTERED),
        LeftOut(records[3], Left.SET_ASIDE, "f: bad"),
        Going(records[4]._replace(value=b"", key=None, headers=(), timestamp=3), "a/b"),
    ]


async def test_while_a_filter_cannot_judge_all_wait(autojump_clock: trio.testing.MockClock) -> None:
    said: list[str] = []
    records = [stored(b"a"), stored(b"b")]
    chain = Chain([None, NotReady("the schemas")], [FilterFailure("f", "it is broken"), None], [None, None])
    assert await filtered(chain, records, said.append) == [Going(one) for one in records]
    assert said == ["a filter waits for the schemas", "the filter f fails: it is broken"]
    assert chain.forgotten == 2
    assert trio.current_time() == pytest.approx(2 * filtering.PAUSE_S)


@pytest.mark.setting("mqtt.egress.filters")
async def test_records_pass_the_filters_of_settings(tmp_path: Path) -> None:
    settings = {
        **DOWN,
        "lc.record.filter.cards": "mask patterns=card keep=4",
        "lc.record.filter.shown": "deny field=secret",
        "lc.record.filter.flat": "flatten",
        "lc.record.filter.alarms": "route regex=orders replacement=alarms/orders when='value.level == \"high\"'",
        "mqtt.egress.filters": "shown,cards,flat,alarms",
    }
    async with running_mqtt(tmp_path, settings) as mqtt:
        subscriber = await mqtt.connect("s")
        await subscriber.subscribe("#")
        for value in (b'{"secret":1}', b"no json", b'{"paid":"4111111111111111"}', b'{"level":"high"}'):
            await mqtt.broker.produce("orders", value, b"k")
        for topic, payload in (
            ("orders/k", b'{"paid":"************1111"}'),
            ("alarms/orders", b'{"level":"high"}'),
        ):
            message = await subscriber.message()
            assert (message.topic, message.payload) == (topic, payload)
        await subscriber.leave()


async def test_a_filter_that_is_not_there_is_said_and_nothing_is_published(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, {**DOWN, "mqtt.egress.filters": "nothing"}) as mqtt:
        subscriber = await mqtt.connect("s")
        await subscriber.subscribe("orders/#")
        await mqtt.broker.produce("orders", b"x", b"k")
        counts = mqtt.running.egress.counts["orders"]  # type: ignore[union-attr]
        with trio.fail_after(20):
            while not counts.trouble:
                await trio.sleep(0.01)
        assert counts.trouble.startswith("there is no record filter nothing")
        await subscriber.nothing()
