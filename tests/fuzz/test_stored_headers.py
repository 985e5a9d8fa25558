"""No bytes that are stored may make an answer that cannot be written, or end anything in a traceback.

Batches whose CRC is right and whose header says anything: as a client may append them, and as they lie in a folder that
was adopted. Each API is asked about them in all its versions; the broker checks, rolls, compacts and stops; our tools
read the files.
"""

from __future__ import annotations

import itertools
import json
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis.strategies import sampled_from

from leafcuttr.cli.root import cli
from leafcuttr.embedded import EmbeddedBroker
from leafcuttr.errors import BrokerError
from leafcuttr.state.transactions.states import TransactionState
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.batch import BatchHeader, sealed, unpack
from leafcuttr.wire.messages.internal.group_metadata import GroupMetadataKey, GroupMetadataValue
from leafcuttr.wire.messages.internal.offset_commit import OffsetCommitKey, OffsetCommitValue
from leafcuttr.wire.messages.internal.transaction_log import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk import TopicPartition
from support import librdkafka
from support.live_broker import LiveBroker, live_broker
from support.logs import NOW, batch
from support.stored_bytes import (
    InternalRecords,
    ask_coordinators,
    ask_everything,
    batches,
    copied,
    do_everything,
    internal_records,
    put,
    stored_record,
    versions,
)
from support.wire_client import WireClient

# Without shrinking: an example is a start of the broker or two.
SMALL = settings(
    phases=[Phase.explicit, Phase.generate],
    max_examples=2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
LONG = settings(SMALL, max_examples=400)
TOPIC = {"min_cleanable_dirty_ratio": "0", "segment_ms": "1000", "cleanup_policy": "compact,delete"}
QUIET = {
    "lc.metrics.enable": "true",
    "lc.metrics.port": "0",
    "log.cleaner.backoff.ms": "86400000",
    "log.retention.check.interval.ms": "86400000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


class Watched(logging.Handler):
    """What is said with a traceback: an error that nobody expected."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.seen.append(self.format(record))


@contextmanager
def nothing_unexpected() -> Iterator[None]:
    watched = Watched()
    logger = logging.getLogger("leafcuttr")
    logger.addHandler(watched)
    try:
        yield
    finally:
        logger.removeHandler(watched)
    assert not watched.seen, watched.seen[0]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("origin") / "data"
    with live_broker(directory, QUIET) as broker, WireClient(broker.address) as client:
        librdkafka.create(broker.address, "t", **TOPIC)
        ask_coordinators(client)  # which makes the internal topics
    assert (directory / "__consumer_offsets-0").is_dir()
    assert (directory / "__transaction_state-0").is_dir()
    return directory


async def _read_in_process(core: Any, topic: str) -> None:
    view = EmbeddedBroker(core)
    for committed in (False, True):
        try:
            found = await view.fetch({TopicPartition(topic, 0): 0}, committed=committed)
            json.dumps([[record.offset, record.timestamp] for record in found.records])
        except BrokerError:
            continue


async def _lag_in_process(core: Any) -> None:
    with suppress(BrokerError):
        EmbeddedBroker(core).groups.lag("g")


def scrape(broker: LiveBroker) -> None:
    """The metrics; those of lag take a timestamp from a header."""
    assert broker.broker.admin is not None
    with urlopen(f"http://127.0.0.1:{broker.broker.admin.port}/metrics") as page:
        assert page.status == 200
        assert b"leafcuttr_" in page.read()


def look(broker: LiveBroker, topic: str, stored: list[bytearray]) -> None:
    scrape(broker)
    with WireClient(broker.address) as client:
        ask_everything(broker, client, topic, stored)
        broker.run(_read_in_process, broker.broker, topic)
        do_everything(broker, client, topic)
        ask_everything(broker, client, topic, stored)


def read_by_tools(directory: Path) -> None:
    """`verify` finds fault, or does not; `dump` prints; neither raises."""
    told = CliRunner().invoke(cli, ["verify", str(directory)])
    assert told.exception is None or isinstance(told.exception, SystemExit), told.output
    for path in sorted((directory / "t-0").iterdir()):
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
            for more in ([], ["--records"], ["--json"]):
                told = CliRunner().invoke(cli, ["dump", str(path), *more])
                assert told.exception is None or isinstance(told.exception, SystemExit), told.output


def stored_is_harmless(origin: Path, tmp_path: Path, stored: list[bytearray], base: int = 0) -> None:
    directory = copied(origin, tmp_path / "data")
    put(directory / "t-0", stored, base)
    with nothing_unexpected():
        for _ in range(2):  # the second start finds what the first has written
            with live_broker(directory, QUIET) as broker:
                look(broker, "t", stored)
    read_by_tools(directory)
    shutil.rmtree(directory)


def header(**fields: int) -> bytearray:
    """A batch of one record with another header."""
    one = batch(1, key=b"k")
    return sealed(BatchHeader._make(unpack(one))._replace(**fields), one[61:])


LAST = 2**63 - 1


def three(**fields: int) -> bytearray:
    """Three records, each a millisecond after the one before, with another header."""
    whole = encode_batch([Record(number, NOW + number, b"%d" % number, b"v") for number in range(3)])
    return sealed(BatchHeader._make(unpack(whole))._replace(**fields), whole[61:])


@pytest.mark.long
@SMALL
@given(stored=batches(stored=True))
@example(stored=[three(base_timestamp=LAST)])
@example(stored=[three(base_timestamp=LAST - 1, max_timestamp=LAST)])
@example(stored=[header(base_timestamp=-LAST - 1, max_timestamp=LAST)])
@example(stored=[header(base_offset=LAST)])
@example(stored=[header(base_offset=LAST - 1)])
@example(stored=[header(producer_id=LAST, base_sequence=-7, producer_epoch=-1)])
@example(stored=[header(leader_epoch=-7), header(base_offset=1, leader_epoch=2**31 - 1)])
def test_batches_in_a_folder(origin: Path, tmp_path: Path, stored: list[bytearray]) -> None:
    stored_is_harmless(origin, tmp_path, stored)


@pytest.mark.long
@LONG
@given(stored=batches(stored=True))
def test_many_batches_in_a_folder(origin: Path, tmp_path: Path, stored: list[bytearray]) -> None:
    stored_is_harmless(origin, tmp_path, stored)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("running") / "data", QUIET) as broker:
        yield broker


_NUMBERS = itertools.count()


def appended_is_harmless(running: LiveBroker, sent: list[bytearray], kind: str) -> None:
    topic = f"t-{next(_NUMBERS)}"
    after = {"message_timestamp_after_max_ms": str(LAST)}
    librdkafka.create(running.address, topic, **after, message_timestamp_type=kind, segment_ms="1000")
    with nothing_unexpected():
        with WireClient(running.address) as client:
            for each in (*sent, *sent):  # the second time they are duplicates
                for version in versions(ApiKey.PRODUCE):
                    client.produce(topic, each, version=version)
        look(running, topic, sent)
    librdkafka.delete(running.address, topic)


@pytest.mark.long
@SMALL
@given(sent=batches(stored=False), kind=sampled_from(["CreateTime", "LogAppendTime"]))
@example(sent=[three(base_timestamp=LAST)], kind="CreateTime")
@example(sent=[three(base_timestamp=LAST - 1, max_timestamp=LAST)], kind="CreateTime")
def test_batches_that_clients_send(running: LiveBroker, sent: list[bytearray], kind: str) -> None:
    appended_is_harmless(running, sent, kind)


@pytest.mark.long
@LONG
@given(sent=batches(stored=False), kind=sampled_from(["CreateTime", "LogAppendTime"]))
def test_many_batches_that_clients_send(running: LiveBroker, sent: list[bytearray], kind: str) -> None:
    appended_is_harmless(running, sent, kind)


def internal_is_harmless(origin: Path, tmp_path: Path, stored: InternalRecords) -> None:
    directory = copied(origin, tmp_path / "data")
    for topic, rows in zip(("__consumer_offsets", "__transaction_state"), stored, strict=True):
        records = [Record(number, NOW, key, value) for number, (key, value) in enumerate(rows)]
        put(directory / f"{topic}-0", [encode_batch(records)])
    with nothing_unexpected():
        for _ in range(2):
            with live_broker(directory, QUIET) as broker, WireClient(broker.address) as client:
                scrape(broker)
                broker.run(_lag_in_process, broker.broker)
                ask_coordinators(client)
                scrape(broker)
    shutil.rmtree(directory)


OFFSET = (
    stored_record(1, OffsetCommitKey(group="g", topic="t", partition=-5)),
    stored_record(4, OffsetCommitValue()),
)
GROUP = (
    stored_record(2, GroupMetadataKey(group="g")),
    stored_record(3, GroupMetadataValue(generation=2**31 - 1)),
)


def transaction(state: TransactionState, epoch: int) -> tuple[bytes, bytes]:
    value = TransactionLogValue(
        transaction_status=state,
        producer_epoch=epoch,
        transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[-5, 0])],
    )
    return stored_record(0, TransactionLogKey(transactional_id="x")), stored_record(1, value)


@pytest.mark.long
@SMALL
@given(stored=internal_records())
@example(stored=([OFFSET, GROUP], [transaction(TransactionState.DEAD, 0)]))
@example(stored=([OFFSET, GROUP], [transaction(TransactionState.PREPARE_EPOCH_FENCE, 0)]))
@example(stored=([OFFSET, GROUP], [transaction(TransactionState.ONGOING, 2**15 - 1)]))
@example(stored=([OFFSET, GROUP], [transaction(TransactionState.PREPARE_COMMIT, 2**15 - 1)]))
def test_records_of_coordinators(origin: Path, tmp_path: Path, stored: InternalRecords) -> None:
    internal_is_harmless(origin, tmp_path, stored)


@pytest.mark.long
@LONG
@given(stored=internal_records())
def test_many_records_of_coordinators(origin: Path, tmp_path: Path, stored: InternalRecords) -> None:
    internal_is_harmless(origin, tmp_path, stored)
