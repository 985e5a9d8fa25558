"""The rows of the page, in its order: what is measured, on which sides, and which sources the figures depend on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import load
from coordinators import remembered
from load import Figures
from peers import Peer

HANDLERS, SERVER, LOG, WIRE = (f"core/leafcuttr/{folder}" for folder in ("handlers", "server", "log", "wire"))
SERVING = tuple(
    f"{SERVER}/{name}.py"
    for name in ("reactor", "connection", "states", "transport", "outbox", "receive", "routes", "limits")
)
APPENDING = (
    *(
        f"{LOG}/append/{name}.py"
        for name in ("background_write", "chain/chain", "commit", "pending_write", "roll", "rules", "stage")
    ),
    f"{LOG}/log.py",
    f"{LOG}/state.py",
    f"{LOG}/producers/state.py",
    f"{LOG}/segment/index.py",
    f"{LOG}/segment/segment.py",
    "core/leafcuttr/runtime/writers.py",
)
PRODUCING = (
    *SERVING,
    *APPENDING,
    *(f"{HANDLERS}/{name}.py" for name in ("produce", "produce_answers", "produce_checks")),
    f"{SERVER}/repeated_produce.py",
    f"{LOG}/append/check.py",
    f"{WIRE}/batch.py",
    "sdk/leafcuttr_sdk/batches/checksum.py",
    "sdk/leafcuttr_sdk/batches/header.py",
    f"{WIRE}/record_lengths.py",
    f"{WIRE}/messages/produce.py",
)
FETCHING = (
    *SERVING,
    f"{HANDLERS}/fetch.py",
    f"{LOG}/read/read.py",
    f"{LOG}/read/lookup.py",
    "core/leafcuttr/state/fetch_sessions.py",
    f"{WIRE}/messages/fetch.py",
)
TRANSACTING = (
    *PRODUCING,
    "core/leafcuttr/state/transactions",
    *(f"{HANDLERS}/{name}.py" for name in ("add_partitions_to_txn", "end_txn", "init_producer_id")),
)
STARTING = (
    f"{SERVER}/run.py",
    f"{SERVER}/background.py",
    f"{LOG}/manager.py",
    f"{LOG}/layout/directory.py",
    f"{LOG}/recovery/recovery.py",
    f"{LOG}/recovery/rescan.py",
    f"{LOG}/layout/checkpoints.py",
    "core/leafcuttr/state/metadata.py",
    "core/leafcuttr/plugins/finding.py",
)
GROUPS = ("core/leafcuttr/state/groups",)
CHECKING = (
    *PRODUCING,
    f"{WIRE}/records.py",
    f"{LOG}/append/conversion.py",
    f"{LOG}/append/preparation.py",
)
"""What the checks of records in a produce depend on."""
LOOKS = "tests/bench/plugins/looks.py"
PEEKING = (
    *PRODUCING,
    LOOKS,
    f"{LOG}/append/preparation.py",
    f"{LOG}/append/chain/peeking.py",
    f"{WIRE}/record_peek.py",
    f"{WIRE}/record_rows.py",
    f"{WIRE}/record_runs.py",
)
"""What a look at the first bytes of records depends on."""


@dataclass(frozen=True)
class Side:
    """One broker under test: Apache Kafka, or ours with some settings, perhaps of another tree: `interpreter`."""

    name: str
    settings: tuple[str, ...] = ()
    kafka: bool = False
    interpreter: str = sys.executable


OURS = Side("leafcuttr")
KAFKA = Side("kafka", kafka=True)
BESIDE_KAFKA = (OURS, KAFKA)


@dataclass(frozen=True)
class Row:
    """One measurement; it stands by itself, whatever was measured before it.

    `paths`, files or folders, say when it should be measured anew. A `fresh` one starts the brokers itself. The others
    find them running and warm; `alone` ones on an empty directory of their own. `pairs`: the ratio is the median of
    the ratios of the runs, because two runs that follow each other share what else the machine does.
    """

    name: str
    what: str
    measure: Callable[[Peer, int], Figures]
    paths: tuple[str, ...]
    runs: int = 3
    sides: tuple[Side, ...] = BESIDE_KAFKA
    fresh: bool = False
    alone: bool = False
    pairs: bool = False


AT_ONCE = "log.segment.delete.delay.ms=0"  # what a run has written is there for the next


def price(
    name: str,
    what: str,
    setting: str,
    value: str,
    base: str,
    measure: Callable[[Peer, int], Figures],
    paths: tuple[str, ...],
) -> Row:
    """What a value of a setting costs, by our broker with it and our broker with another value, in five pairs."""
    sides = (
        Side(f"{setting}={value}", (f"{setting}={value}", AT_ONCE)),
        Side(f"{setting}={base}", (f"{setting}={base}", AT_ONCE)),
    )
    # Alone: each begins without what others have written, and its gigabytes go with it.
    return Row(name, what, measure, paths, runs=5, sides=sides, alone=True, pairs=True)


def look(size: str) -> Row:
    """What a validator costs that looks at the first bytes of values of this size."""
    path = f"lc.plugins.path={(Path(__file__).parents[2] / LOOKS).parent}"
    return Row(
        f"peek-{size}",
        f"produce, {size} bytes a record",
        partial(load.produce_cpu, count=600_000, size=size),
        PEEKING,
        runs=5,
        sides=(
            Side("lc.validators=peeked", (path, "lc.validators.cpu-*=peeked", AT_ONCE)),
            Side("lc.validators=none", (path, AT_ONCE)),
        ),
        alone=True,
        pairs=True,
    )


ROWS = (
    Row("start", "start on an empty directory, then at rest", load.start, STARTING, fresh=True),
    Row("produce-1000", "produce, acks=all, 1000 bytes a record", load.produce_1000, PRODUCING),
    Row("consume-1000", "consume, 1000 bytes a record", load.consume_1000, FETCHING),
    Row("produce-100", "produce, acks=all, 100 bytes a record", load.produce_100, PRODUCING),
    Row(
        "java-produce-1000",
        "produce, Kafka's client by its defaults, 1000 bytes a record",
        partial(load.java_produce, size=1000, count=600_000),
        PRODUCING,
    ),
    Row(
        "java-produce-100",
        "produce, Kafka's client by its defaults, 100 bytes a record",
        partial(load.java_produce, size=100, count=3_000_000),
        PRODUCING,
    ),
    Row("one-a-batch", "produce, one record a batch, 100 in flight", load.one_a_batch, PRODUCING),
    Row("eight-clients", "produce, 8 clients, one record at a time", load.eight_clients, PRODUCING),
    *(
        Row(
            f"synced-{clients}",
            f"on the disk at the answer, {clients} client{'s' * (clients > 1)}",
            partial(load.synced, clients=clients),
            PRODUCING,
        )
        for clients in (1, 8, 32)
    ),
    Row("transactions", "transactions of 100 records, librdkafka", load.transactions, TRANSACTING),
    Row(
        "java-transactions",
        "transactions of 100 records, Kafka's client",
        load.java_transactions,
        TRANSACTING,
    ),
    Row("latency", "produce-to-acknowledge at 1000 records/s", load.latency, PRODUCING),
    Row(
        "loaded",
        "resident memory after 0.9 GB written and read",
        load.memory,
        (*PRODUCING, *FETCHING),
        runs=1,
        alone=True,
    ),
    Row(
        "crowd",
        "1,000 producing connections, 200 consumers in 20 groups",
        load.crowd,
        (*PRODUCING, *FETCHING, *GROUPS),
        runs=1,
        alone=True,
    ),
    Row(
        "after-kill",
        "start after SIGKILL with a segment of 0.97 GB",
        load.after_kill,
        STARTING,
        runs=1,
        alone=True,
    ),
    Row(
        "remembered",
        "start with 100,000 offsets and 10,000 transactional ids",
        remembered,
        (*STARTING, *GROUPS, "core/leafcuttr/state/transactions", "core/leafcuttr/state/internal_log.py"),
        runs=1,
        alone=True,
    ),
    Row(
        "partitions-1000",
        "clean stop and start, 1,000 partitions",
        partial(load.many_partitions, count=1000),
        STARTING,
        runs=1,
        alone=True,
    ),
    # 10,000 partitions need more descriptors than Kafka is given here.
    Row(
        "partitions-10000",
        "clean stop and start, 10,000 partitions",
        partial(load.many_partitions, count=10_000),
        STARTING,
        runs=1,
        sides=(OURS,),
        alone=True,
    ),
    # Last: the brokers of the other rows are stopped for these.
    *(
        price(
            f"check-{value}-{size}",
            f"produce, {size} bytes a record",
            "lc.records.check",
            value,
            "off",
            partial(load.produce_cpu, count=count, size=size),
            CHECKING,
        )
        for value, size, count in (
            ("ends", "1000", 600_000),
            ("ends", "500-1500", 600_000),
            ("ends", "100", 3_000_000),
            ("ends", "50-150", 3_000_000),
            ("full", "1000", 600_000),
            ("full", "100", 3_000_000),
        )
    ),
    *map(look, ("1000", "500-1500")),
)
