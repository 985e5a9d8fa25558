"""Transactions as the log sees them: what is open, what markers do, what read_committed readers may see."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.files.open_file import NotCached
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.log import Log
from leafcuttr.log.producers.snapshot import read_snapshot
from leafcuttr.log.read.aborted import read_txn_index
from leafcuttr.log.segment.segment import Segment
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr.wire.batch import parse
from leafcuttr.wire.markers import Marker, encode_marker, read_marker
from support.gates_slice import sampled
from support.logs import NOW, append, append_marker, batch, make_log, read_all, stage_marker, write_now


def send(
    log: Log,
    sequence: int,
    *,
    producer_id: int = 1,
    epoch: int = 0,
    count: int = 1,
    transactional: bool = True,
) -> int:
    data = batch(
        count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    staged = log.stage(memoryview(data), Origin.CLIENT, now_ms=NOW)
    write_now(log)
    return staged.base_offset


def end(
    log: Log,
    *,
    commit: bool,
    producer_id: int = 1,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    version: int = 1,
) -> int:
    return append_marker(
        log,
        producer_id,
        epoch,
        commit=commit,
        coordinator_epoch=coordinator_epoch,
        now_ms=NOW,
        transaction_version=version,
    )


def code(log: Log, *, commit: bool = True, **fields: int) -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        end(log, commit=commit, **fields)
    return refused.value.code


def test_a_marker_as_kafka_writes_it() -> None:
    """The bytes of MemoryRecords.withEndTransactionMarker of Apache Kafka 4.3.1."""
    data = encode_marker(1234, 7, Marker(False, 42), timestamp=NOW)
    assert len(data) == 78
    header = parse(data)
    assert (header.is_control, header.is_transactional, header.base_sequence) == (True, True, -1)
    assert (header.producer_id, header.producer_epoch, header.count) == (1234, 7, 1)
    assert bytes(data[61:]).hex() == "20000000" + "08" + "00000000" + "0c" + "0000" + "0000002a" + "00"
    assert read_marker(data) == Marker(False, 42)
    assert read_marker(encode_marker(1, 0, Marker(True, 0), timestamp=NOW)) == Marker(True, 0)


def test_the_last_stable_offset_waits_for_the_first_open_transaction(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    send(log, 0, producer_id=9, transactional=False)
    assert log.last_stable_offset == 1
    assert log.ongoing(1) == -1
    send(log, 0, count=3)
    send(log, 0, producer_id=2)
    send(log, 3)
    assert (log.ongoing(1), log.ongoing(2), log.ongoing(1, 0), log.ongoing(1, 1)) == (1, 4, 1, -1)
    assert (log.last_stable_offset, log.high_watermark) == (1, 6)
    assert end(log, commit=True) == 6
    assert (log.last_stable_offset, log.ongoing(1)) == (4, -1)
    send(log, 4)
    assert end(log, commit=False, producer_id=2) == 8
    assert log.last_stable_offset == 7
    end(log, commit=True)
    assert log.last_stable_offset == log.log_end_offset == 10
    assert log.aborted_transactions(0, 10) == [AbortedTransaction(2, 4, 8, 7)]
    assert log.aborted_transactions(0, 4) == []
    assert log.aborted_transactions(5, 10) == [AbortedTransaction(2, 4, 8, 7)]
    assert log.aborted_transactions(9, 10) == []


def test_staged_is_not_stable_yet_but_counts_for_what_follows(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    data = batch(2, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    log.stage(memoryview(data), Origin.CLIENT, now_ms=NOW)
    assert (log.ongoing(1), log.last_stable_offset) == (0, 0)
    stage_marker(log, 1, 0, commit=False, coordinator_epoch=0, now_ms=NOW)
    assert log.ongoing(1) == -1
    assert log.aborted_transactions(0, 3) == []
    again = batch(2, producer_id=1, producer_epoch=0, base_sequence=2, transactional=True)
    log.stage(memoryview(again), Origin.CLIENT, now_ms=NOW)
    assert log.ongoing(1) == 3
    write_now(log)
    assert (log.last_stable_offset, log.high_watermark) == (3, 5)
    assert log.aborted_transactions(0, 3) == [AbortedTransaction(1, 0, 2, 3)]


def test_a_failed_write_leaves_the_transaction_as_it_was(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    send(log, 0)
    stage_marker(log, 1, 0, commit=False, coordinator_epoch=3, now_ms=NOW)
    log.forget_staged()
    assert (log.ongoing(1), log.last_stable_offset, log.aborted_transactions(0, 9)) == (0, 0, [])
    assert end(log, commit=True, coordinator_epoch=2) == 1


def test_an_open_transaction_takes_no_plain_batch(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    send(log, 0)
    with pytest.raises(BrokerError) as refused:
        send(log, 1, transactional=False)
    assert refused.value.code == ErrorCode.INVALID_TXN_STATE
    assert send(log, 1) == 1
    end(log, commit=True)
    assert send(log, 2, transactional=False) == 3


def test_who_may_write_a_marker(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    assert end(log, commit=True, producer_id=7, epoch=3, coordinator_epoch=5) == 0, "nothing is known of it"
    assert code(log, producer_id=7, epoch=2, coordinator_epoch=5) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert code(log, producer_id=7, epoch=3, coordinator_epoch=4) == (
        ErrorCode.TRANSACTION_COORDINATOR_FENCED
    )
    end(log, commit=False, producer_id=7, epoch=4, coordinator_epoch=5)
    assert log.aborted_transactions(0, 9) == [], "there was nothing to abort"
    assert send(log, 0, producer_id=7, epoch=4) == 2, "a new epoch begins at 0"


def test_the_markers_of_transaction_version_2_raise_the_epoch(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    send(log, 0, epoch=4)
    assert code(log, epoch=4, version=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, commit=True, epoch=5, version=2)
    end(log, commit=True, epoch=5, version=2)
    with pytest.raises(BrokerError) as late:
        send(log, 1, epoch=4)
    assert late.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(BrokerError) as gap:
        send(log, 1, epoch=5)
    assert gap.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 0, epoch=5)
    assert code(log, epoch=5, version=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    send(log, 0, producer_id=3, epoch=32767)
    end(log, commit=True, producer_id=3, epoch=32767, version=2)


def test_a_coordinator_writes_without_sequences(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    data = bytes(batch(1, producer_id=1, producer_epoch=0, transactional=True))
    with pytest.raises(BrokerError) as refused:
        append(log, data, NOW)
    assert refused.value.code == ErrorCode.INVALID_RECORD
    assert [append(log, data, NOW, Origin.COORDINATOR) for _ in range(3)] == [0, 1, 2]
    assert log.last_stable_offset == 0
    end(log, commit=False)
    assert log.aborted_transactions(0, 9) == [AbortedTransaction(1, 0, 3, 4)]
    end(log, commit=True, epoch=1)
    with pytest.raises(BrokerError) as fenced:
        append(log, data, NOW, Origin.COORDINATOR)
    assert fenced.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_expiry_keeps_what_is_open(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    send(log, 0)
    assert log.producers.expire(NOW + 10_000_000, 1000) == 0
    end(log, commit=True)
    assert log.producers.expire(NOW + 10_000_000, 1000) == 1


def test_indexes_are_per_segment_and_follow_it(tmp_path: Path) -> None:
    log = make_log(tmp_path, file_delete_delay_ms=0)
    send(log, 0)
    log.roll()
    send(log, 0, producer_id=2)
    end(log, commit=False, producer_id=2)
    log.roll()
    end(log, commit=False)
    log.flush_indexes()
    files = sorted(path.name for path in tmp_path.glob("*.txnindex"))
    assert files == ["00000000000000000001.txnindex", "00000000000000000003.txnindex"]
    assert log.aborted_transactions(0, 1) == [AbortedTransaction(1, 0, 3, 4)]
    everything = [AbortedTransaction(2, 1, 2, 0), AbortedTransaction(1, 0, 3, 4)]
    assert log.aborted_transactions(0, 4) == everything
    assert read_txn_index(str(tmp_path / files[0]), FilePool()) == everything[:1]
    assert read_snapshot(tmp_path / "00000000000000000003.snapshot").first_unstable == 0
    log.delete_records_before(3)
    assert [path.name for path in tmp_path.glob("*.txnindex")] == files[1:]
    assert log.aborted_transactions(3, 4) == everything[1:]
    log.delete_scheduled_files(NOW + 1, at_most=99)
    assert not list(tmp_path.glob("*.deleted"))


async def test_many_segments_are_searched_off_the_loop(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    for number in range(25):
        send(log, number)
        if number in (3, 20):
            end(log, commit=False)
        log.roll()
    end(log, commit=True)
    log.flush_indexes()
    again = Log(
        log.topic_partition, tmp_path, log.config, segments=[
            Segment.open(str(tmp_path), one.base_offset, pool=log.pool) for one in log.segments
        ], log_end_offset=log.log_end_offset, resources=log.resources,
    )  # fmt: skip
    with pytest.raises(NotCached):
        again.aborted_transactions(0, 9, may_block=False)
    everything = log.aborted_transactions(0, log.log_end_offset)
    assert len(everything) == 2
    found = await again.off_loop(
        lambda may: again.aborted_transactions(0, again.log_end_offset, may_block=may)
    )
    assert found == everything
    at = [segment.base_offset for segment in again.segments].index(everything[0].last_offset - 1)
    again.segments[at : at + 2] = [Segment.open(str(tmp_path), again.segments[at].base_offset, pool=log.pool)]
    assert again.aborted_transactions(0, again.log_end_offset) == everything


def test_deleted_records_let_the_last_stable_offset_go(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    send(log, 0, count=4)
    log.delete_records_before(3)
    assert log.last_stable_offset == 3
    assert log.ongoing(1) == 0


Step = tuple[str, int, int]


@settings(max_examples=sampled(60), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["send", "plain", "commit", "abort", "stage", "roll"]),
            st.integers(1, 3),
            st.integers(1, 3),
        ),
        max_size=40,
    ),
    st.data(),
)
def test_log_and_model_agree(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], data: st.DataObject
) -> None:
    """The model keeps for every producer where its transaction began, and for every record whether it counts."""
    log = make_log(tmp_path_factory.mktemp("log"))
    begun: dict[int, int] = {}
    sequences: dict[int, int] = {}
    aborted: list[AbortedTransaction] = []
    hidden: set[int] = set()
    owned: dict[int, list[int]] = {}
    for action, producer, count in steps:
        if action == "roll":
            if not log.busy:
                log.roll()
            continue
        offset = log.next_offset
        if action in ("send", "stage", "plain"):
            if action == "plain" and producer in begun:
                continue
            sequence = sequences.get(producer, 0)
            raw = batch(
                count,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=sequence,
                transactional=action != "plain",
            )
            log.stage(memoryview(raw), Origin.CLIENT, now_ms=NOW)
            sequences[producer] = sequence + count
            if action != "plain":
                begun.setdefault(producer, offset)
                owned.setdefault(producer, []).extend(range(offset, offset + count))
        else:
            stage_marker(log, producer, 0, commit=action == "commit", coordinator_epoch=0, now_ms=NOW)
            first = begun.pop(producer, None)
            mine = owned.pop(producer, [])
            if action == "abort" and first is not None:
                aborted.append(
                    AbortedTransaction(producer, first, offset, min(begun.values(), default=offset + 1))
                )
                hidden.update(mine)
        if action != "stage":
            write_now(log)
            assert log.last_stable_offset == min(begun.values(), default=log.log_end_offset)
    write_now(log)
    stable = log.last_stable_offset
    assert log.aborted_transactions(0, log.log_end_offset) == aborted
    low = data.draw(st.integers(0, stable))
    high = data.draw(st.integers(low, stable))
    told = log.aborted_transactions(low, high)
    assert [one for one in aborted if one.last_offset >= low and one.first_offset < high] == told
    assert {each for each in hidden if low <= each < high} <= {
        each for one in told for each in range(one.first_offset, one.last_offset)
    }
    assert log.producers.first_unstable == min(begun.values(), default=-1)
    assert len(read_all(log)) == log.size
