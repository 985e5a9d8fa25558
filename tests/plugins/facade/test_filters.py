"""Filters and validators see what plugins write, by every way that plugins have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.chains import Instance, Tables
from leafcuttr.wire.records import Record as WireRecord
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk import (
    DROP,
    Appended,
    Broker,
    DeadLetter,
    NewBatch,
    Produced,
    Record,
    StoredRecord,
    TopicPartition,
)
from leafcuttr_sdk.errors import BrokerError, InvalidRecord, InvalidTimestamp
from plugins.facade.conftest import PLUGIN
from support.live_broker import LiveBroker, live_broker
from support.waiting import until


def sort(record: Record) -> Any:
    match (record.value or b"")[:1]:
        case b"d":
            return DROP
        case b"l":
            return DeadLetter("it begins with an l")
        case b"c":
            return record._replace(value=b"changed")
    return record


def short(record: Record) -> str | None:
    return None if len(record.value or b"") < 100 else "too long"


def fail(record: Record) -> Any:
    raise LookupError("no table")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    made = Tables(
        {"sort": lambda *_: Instance("tests", sort), "fail": lambda *_: Instance("tests", fail)},
        {"short": lambda *_: Instance("tests", short)},
    )
    with live_broker(Path(tmp_path_factory.mktemp("filters"))) as live:
        live.call(live.broker.chains.equip, made)
        yield live


@pytest.fixture(scope="module")
def view(live: LiveBroker) -> Broker:
    return live.call(make_broker_view, live.broker, PLUGIN)


def stored(live: LiveBroker, view: Broker, topic: str) -> list[StoredRecord]:
    async def fetch() -> list[StoredRecord]:
        if not view.topics.partition_count(topic):
            return []
        return [*(await view.fetch({TopicPartition(topic, 0): 0})).records]

    return live.run(fetch)


def create(live: LiveBroker, view: Broker, topic: str, **configs: str) -> None:
    async def made() -> None:
        await view.topics.create(
            topic, configs={name.replace("_", "."): text for name, text in configs.items()}
        )

    live.run(made)


def test_records_are_kept_changed_dropped_and_sent_elsewhere(live: LiveBroker, view: Broker) -> None:
    create(live, view, "t", lc_filters="sort")
    answers = live.run(
        view.produce_batch, "t", [Record(each) for each in (b"kept", b"d", b"c", b"l", b"end")]
    )
    assert [each.offset for each in answers if isinstance(each, Produced)] == [0, 1, 2, 3, 4]
    batch = encode_batch([WireRecord(n, 1, None, value) for n, value in enumerate((b"d", b"again"))])
    assert live.run(view.append, [NewBatch(TopicPartition("t", 0), batch)]) == [Appended(5, 6)]
    expected = [(0, b"kept"), (2, b"changed"), (4, b"end"), (6, b"again")]
    assert [(each.offset, each.value) for each in stored(live, view, "t")] == expected
    until(lambda: bool(stored(live, view, "t.dlq")), "the dead letter")
    (letter,) = stored(live, view, "t.dlq")
    assert letter.value == b"l" and dict(letter.headers)["lc.dead.letter.reason"] == b"it begins with an l"


def test_a_batch_of_which_nothing_stays_still_moves_readers_on(live: LiveBroker, view: Broker) -> None:
    create(live, view, "empty", lc_filters="sort")
    live.run(view.produce_batch, "empty", [Record(b"d")] * 3)
    at = {TopicPartition("empty", 0): 0}
    fetched = live.run(view.fetch, at)
    assert (list(fetched.records), fetched.positions) == ([], {TopicPartition("empty", 0): 3})


def test_large_batches_are_filtered_by_a_worker(live: LiveBroker, view: Broker) -> None:
    create(live, view, "large", lc_filters="sort", lc_validators="short")
    values = [(b"d" if n % 3 else b"k") + b"%d" % n for n in range(20_000)]
    answers = live.run(view.produce_batch, "large", [Record(value) for value in values])
    assert [each.offset for each in answers if isinstance(each, Produced)] == list(range(20_000))
    kept = [each.value for each in stored(live, view, "large")]
    assert kept == [value for value in values if value.startswith(b"k")]


def test_a_validator_names_the_record(live: LiveBroker, view: Broker) -> None:
    create(live, view, "v", lc_validators="short")
    answers = live.run(view.produce_batch, "v", [Record(b"fine"), Record(b"x" * 100), Record(b"fine")])
    assert [(type(each), str(each)) for each in answers] == [
        (InvalidRecord, "refused because of other records of its batch"),
        (InvalidRecord, "too long"),
        (InvalidRecord, "refused because of other records of its batch"),
    ]
    assert stored(live, view, "v") == []


def test_what_a_validator_refuses_and_what_the_topic_does_not_allow(live: LiveBroker, view: Broker) -> None:
    """The second does not come as far as the validator, nor does it harm the others."""
    create(live, view, "both", lc_validators="short", cleanup_policy="compact")
    records = [Record(b"fine", b"k"), Record(b"x" * 100, None), Record(b"fine", b"k", (), 2**62)]
    answers = live.run(view.produce_batch, "both", records)
    assert [type(each) for each in answers] == [Produced, InvalidRecord, InvalidTimestamp]
    assert "without a key" in str(answers[1])


def test_behind_a_filter_keys_and_times_are_checked_with_the_batch(live: LiveBroker, view: Broker) -> None:
    """It may have given a record another key or time."""
    create(live, view, "keys", lc_filters="sort", cleanup_policy="compact")
    answers = live.run(
        view.produce_batch, "keys", [Record(b"kept", b"k"), Record(b"kept"), Record(b"kept", b"k")]
    )
    assert [type(each) for each in answers] == [InvalidRecord] * 3
    assert "without key" in str(answers[1])
    assert "other records" in str(answers[0]) and "other records" in str(answers[2])
    create(live, view, "times", lc_filters="sort", message_timestamp_after_max_ms="5")
    answers = live.run(view.produce_batch, "times", [Record(b"kept"), Record(b"kept", None, (), 2**62)])
    assert [type(each) for each in answers] == [InvalidRecord, InvalidTimestamp]
    assert stored(live, view, "keys") == stored(live, view, "times") == []
    # One that is dropped needs no key.
    (answer,) = live.run(view.produce_batch, "keys", [Record(b"dropped")])
    assert isinstance(answer, Produced)


def test_a_filter_that_fails_is_an_error_and_loses_nothing(live: LiveBroker, view: Broker) -> None:
    create(live, view, "f", lc_filters="fail")
    (answer,) = live.run(view.produce_batch, "f", [Record(b"v")])
    assert isinstance(answer, BrokerError) and "fail of topic f failed" in str(answer)


def test_they_see_what_is_written_in_transactions(live: LiveBroker) -> None:
    view = live.call(make_broker_view, live.broker, PLUGIN)
    live.run(view.topics.create, "in-txn")
    live.run(view.topics.alter, "in-txn", {"lc.filters": "sort", "lc.validators": "short"})

    def one(*values: bytes) -> NewBatch:
        records = [WireRecord(number, 0, None, value) for number, value in enumerate(values)]
        return NewBatch(TopicPartition("in-txn", 0), encode_batch(records))

    async def run() -> list[StoredRecord]:
        async with view.transaction("filtered") as producer:
            async with producer.begin() as transaction:
                await transaction.produce_batch("in-txn", [Record(b"a"), Record(b"drop"), Record(b"c")])
                await transaction.append([one(b"drop", b"b")])
                await transaction.append(
                    [one(b"drop"), one(b"c2")]
                )  # sequence numbers go on over what is dropped
            with pytest.raises(InvalidRecord, match="too long") as caught:
                async with producer.begin() as transaction:
                    await transaction.produce_batch("in-txn", [Record(b"a"), Record(b"x" * 100)])
            assert [each.batch_index for each in caught.value.record_errors] == [1]
            with pytest.raises(InvalidRecord):
                async with producer.begin() as transaction:
                    await transaction.append([one(b"x" * 100)])
        return list((await view.fetch({TopicPartition("in-txn", 0): 0}, committed=True)).records)

    assert [record.value for record in live.run(run)] == [b"a", b"changed", b"b", b"changed"]
