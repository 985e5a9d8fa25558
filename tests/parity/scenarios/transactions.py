"""Transactions as partitions keep them: transactional records, markers, and what readers of each kind are told.

Whether a partition belongs to a transaction is the coordinator's to say; here it is not asked, so that both brokers can
be given the same producer ids and any sequence of records and markers.
"""

from __future__ import annotations

from typing import Any

from parity.batches import NOW, batch
from parity.scenario import scenario
from parity.scenarios.fetch import ask, fetch, part
from parity.scenarios.offsets import listing
from parity.scenarios.produce import produce
from parity.side import Side

TRANSACTIONAL = 0x10
CONTROL = 0x20
MAX_TIMESTAMP = -3
ENDS = (-1, -2)
TIMES = (*ENDS, MAX_TIMESTAMP, NOW, NOW + 1, NOW + 2)


def records(producer: int, sequence: int, count: int = 1, **more: Any) -> bytes:
    fields = {"producer_id": producer, "producer_epoch": 0, "attributes": TRANSACTIONAL, **more}
    return batch([f"{producer}-{sequence + at}" for at in range(count)], sequence=sequence, **fields)


def send(side: Side, topic: str, data: bytes, case: str = "") -> None:
    body = produce(side, topic, data, transactional_id="some")
    if case:
        side.ask("produce", 9, body, case)
    else:
        side.quiet("produce", 9, body)


def ending(
    topic: str, producer: int, *, commit: bool, partitions: tuple[int, ...] = (0,), **more: Any
) -> dict[str, Any]:
    marker = {
        "producer_id": producer,
        "producer_epoch": 0,
        "transaction_result": commit,
        "topics": [{"name": topic, "partition_indexes": partitions}],
        "coordinator_epoch": 0,
        "transaction_version": 0,
        **more,
    }
    return {"markers": [marker]}


def delete(side: Side, topic: str, offset: int) -> None:
    parts = [{"partition_index": 0, "offset": offset}]
    side.quiet("delete_records", 1, {"topics": [{"name": topic, "partitions": parts}], "timeout": 5_000})


def end(side: Side, topic: str, producer: int, *, commit: bool, **more: Any) -> None:
    side.quiet("write_txn_markers", 1, ending(topic, producer, commit=commit, **more))


def look(side: Side, topic: str, version: int, case: str, times: tuple[int, ...] = TIMES) -> None:
    """Everything a reader can ask, of both kinds."""
    for level, name in ((0, "uncommitted"), (1, "committed")):
        for offset in (0, 2, 5):
            body = fetch(side, {topic: [part(0, offset)]}, isolation_level=level)
            ask_masked(side, version, body, f"{case}: {name} from {offset}")
        for time in times:
            body = listing(topic, (0, time), isolation_level=level)
            answer = side.ask("list_offsets", 7, body, f"{case}: {name} at {time}")
            for one in answer["topics"][0]["partitions"]:
                if time == MAX_TIMESTAMP and one["timestamp"] > NOW + 1000:
                    one["timestamp"] = "that of a marker"
    producers(side, topic, case)


def ask_masked(side: Side, version: int, body: dict[str, Any], case: str) -> Any:
    """A marker carries the time of its broker, and a CRC over it."""
    answer = ask(side, version, body, case)
    for topic in answer.get("responses", []):
        for one in topic["partitions"]:
            for head in one["batches"]:
                if head["attributes"] & CONTROL:
                    head.update(crc="masked", base_time="masked", max_time="masked")
    return answer


def producers(side: Side, topic: str, case: str) -> None:
    body = {"topics": [{"name": topic, "partition_indexes": [0]}]}
    answer = side.ask("describe_producers", 0, body, f"{case}: producers")
    for one in answer["topics"][0]["partitions"][0]["active_producers"]:
        one["last_timestamp"] = "masked"


@scenario("fetch", versions=(4, 12, 16))
def transactions(side: Side, version: int) -> None:
    side.verify(False)  # let records of transactions in that no coordinator knows
    topic = side.create("topic")
    send(side, topic, records(1, 0, attributes=0))
    send(side, topic, records(2, 0, 2, time=NOW + 1))
    look(side, topic, version, "one open")
    send(side, topic, records(3, 0, time=NOW + 2))
    end(side, topic, 2, commit=True)
    look(side, topic, version, "one committed, one open")
    send(side, topic, records(2, 2))
    end(side, topic, 3, commit=False, coordinator_epoch=4)
    look(side, topic, version, "one aborted, one open")
    end(side, topic, 2, commit=False)
    look(side, topic, version, "nothing open")
    delete(side, topic, 4)
    look(side, topic, version, "some deleted", ENDS)
    send(side, topic, records(2, 3))
    delete(side, topic, -1)
    look(side, topic, version, "an open one deleted", ENDS)


@scenario("write_txn_markers", versions=(1, 2))
def markers(side: Side, version: int) -> None:
    side.verify(False)  # let records of transactions in that no coordinator knows
    topic = side.create("topic", 2)

    def write(case: str, producer: int, **more: Any) -> None:
        side.ask("write_txn_markers", version, ending(topic, producer, **{"commit": True, **more}), case)
        producers(side, topic, case)

    write("of a producer that nothing is known of", 1)
    write("again", 1)
    write("an older coordinator", 1, coordinator_epoch=-1)
    write("a newer coordinator", 1, coordinator_epoch=7)
    write("an older coordinator than that", 1, coordinator_epoch=6)
    write("a newer epoch", 1, producer_epoch=3, coordinator_epoch=7)
    write("an older epoch", 1, producer_epoch=2, coordinator_epoch=7)
    write("partitions that do not exist", 1, producer_epoch=3, coordinator_epoch=7, partitions=(0, 1, 2, -1))
    send(side, topic, records(2, 0), "records")
    write("commit", 2)
    send(side, topic, records(2, 1), "more records")
    write("abort", 2, commit=False)
    if version >= 2:
        send(side, topic, records(3, 0), "records of version 2")
        write("the epoch of the records", 3, transaction_version=2)
        write("the next epoch", 3, transaction_version=2, producer_epoch=1)
        write("the next epoch again", 3, transaction_version=2, producer_epoch=1)
        write("an epoch before", 3, transaction_version=2, producer_epoch=0)
        send(side, topic, records(3, 0, producer_epoch=1), "records of the new epoch")
        write("the epoch of the new records", 3, transaction_version=2, producer_epoch=1)
    two = ending(topic, 2, commit=True)
    two["markers"] += ending(topic, 4, commit=False, partitions=(1, 0))["markers"]
    # A second marker for partitions that do not exist is left out: Kafka 4.3 never answers it.
    side.ask("write_txn_markers", version, two, "several")
    side.ask("write_txn_markers", version, {"markers": []}, "none")


# From version 12 on the request itself adds the partition to the transaction, so there has to be one (KIP-890).
@scenario("produce", versions=(3, 9, 11))
def transactional(side: Side, version: int) -> None:
    side.verify(False)  # let records of transactions in that no coordinator knows
    topic = side.create("topic", 2)

    def put(case: str, data: bytes, **more: Any) -> None:
        body = produce(side, topic, data, **{"transactional_id": "some", **more})
        side.ask("produce", version, body, case)

    put("without a transactional id", records(1, 0), transactional_id=None)
    put("first", records(1, 0, 2))
    put("the same again", records(1, 0, 2))
    put("a gap", records(1, 7))
    put("an older epoch", records(1, 2, producer_epoch=-1))
    put("not transactional within a transaction", records(1, 2, attributes=0))
    put("the next", records(1, 2))
    put("control", records(1, 3, attributes=TRANSACTIONAL | CONTROL))
    put("no sequence", records(1, -1))
    end(side, topic, 1, commit=True)
    put("not transactional after it", records(1, 3, attributes=0))
    put("a plain producer", records(9, 0, attributes=0), transactional_id=None)
    end(side, topic, 1, commit=True, producer_epoch=1)
    put("the old epoch", records(1, 4))
    put("the new epoch", records(1, 0, producer_epoch=1))
    producers(side, topic, "at last")
