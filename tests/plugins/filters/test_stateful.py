"""A filter that remembers: each record is shown to each instance once and in order, whether the loop calls it or a
worker, and whatever the batch has to go through."""

from __future__ import annotations

import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr.config.topic import TopicConfig
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.chains import Instance, Tables
from leafcuttr.wire.batch import parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record as Stored
from leafcuttr.wire.records import decode_records, encode_batch
from leafcuttr_sdk import DROP, BrokerError, NewBatch, Plugin, Record
from leafcuttr_sdk.types import TopicPartition
from support.live_broker import LiveBroker, live_broker
from support.logs import NOW, read_all

SIZES = (1, 3, 700, 1, 200, 5000, 1, 1, 90)
"""Records of batches, some of them for a worker."""
PARTITIONS = 4
CONFIGS: dict[str, dict[str, str]] = {
    "plain": {},
    "compressed-anew": {"compression.type": "gzip"},
    "log-append-time": {"message.timestamp.type": "LogAppendTime", "compression.type": "zstd"},
}


class Remembers:
    """Keeps every second record of a key; `seen` are those that it was shown, by thread."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.threads: set[int] = set()
        self.odd: dict[bytes | None, bool] = defaultdict(bool)
        self.busy = False

    def filter(self, record: Record) -> Any:
        assert not self.busy, "two threads call it"
        self.busy = True
        self.threads.add(threading.get_ident())
        assert record.value is not None
        self.seen.append(record.value)
        self.odd[record.key] = not self.odd[record.key]
        self.busy = False
        return record if self.odd[record.key] else DROP

    def validate(self, record: Record) -> None:
        assert record.value is not None
        self.seen.append(record.value)


def stored_values(live: LiveBroker, partition: int) -> list[bytes | None]:
    data, at, found = read_all(live.log("t", partition)), 0, []
    while at < len(data):
        size = parse(data, at).size
        found += [record.value for record in decode_records(data[at : at + size])]
        at += size
    return found


@pytest.mark.one_in(5)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("config", CONFIGS)
def test_no_record_is_shown_twice(tmp_path: Path, codec: Codec, config: str) -> None:
    filters: list[Remembers] = []
    validators: list[Remembers] = []

    def make(made: list[Remembers], method: str) -> Any:
        def instance(_: str, __: TopicConfig) -> Instance:
            made.append(Remembers())
            return Instance("acme", getattr(made[-1], method))

        return instance

    tables = Tables({"second": make(filters, "filter")}, {"all": make(validators, "validate")})
    with live_broker(tmp_path) as live:
        live.call(live.broker.chains.equip, tables)
        view = make_broker_view(live.broker, Plugin("p", 1, "Produces."))

        async def some(partition: int) -> None:
            number = 0
            for size in SIZES:
                records = [
                    Stored(n, NOW, b"%d" % partition, b"%d-%d" % (partition, number + n), ())
                    for n in range(size)
                ]
                number += size
                batch = bytes(encode_batch(records, codec=codec))
                (answer,) = await view.append([NewBatch(TopicPartition("t", partition), batch)])
                assert not isinstance(answer, BrokerError), answer

        async def produce() -> None:
            configs = {"lc.filters": "second", "lc.validators": "all", **CONFIGS[config]}
            await view.topics.create("t", partitions=PARTITIONS, configs=configs)
            with trio.fail_after(120):
                async with trio.open_nursery() as nursery:
                    for partition in range(PARTITIONS):
                        nursery.start_soon(some, partition)

        live.run(produce)
        loop: int = live.call(threading.get_ident)
        kept = [stored_values(live, partition) for partition in range(PARTITIONS)]
    sent = {b"%d-%d" % (partition, n) for partition in range(PARTITIONS) for n in range(sum(SIZES))}
    for (one,) in (filters, validators):
        assert len(one.seen) == len(sent) and set(one.seen) == sent
        for partition in range(PARTITIONS):
            of_partition = [value for value in one.seen if value.startswith(b"%d-" % partition)]
            assert of_partition == [b"%d-%d" % (partition, n) for n in range(sum(SIZES))]
    for partition in range(PARTITIONS):
        assert kept[partition] == [b"%d-%d" % (partition, n) for n in range(0, sum(SIZES), 2)]
    assert filters[0].threads - {loop}, "no worker has called it"
