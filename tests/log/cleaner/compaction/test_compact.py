"""What one round of compaction leaves: compared with a plain model, and rule by rule."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leafcuttr.log.cleaner.compaction.reading import DamagedDataError
from leafcuttr.log.cleaner.job import KnownProducer, SourceSegment
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr.wire.batch import DELETE_HORIZON, parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.markers import Marker, encode_marker
from leafcuttr.wire.records import Record, decode_records, encode_batch
from support.compaction import DAY_MS, compact, headers_of, put_in_place, records_of, result, write_segments
from support.gates_slice import sampled
from support.logs import NOW, patched

KEYS = [b"", b"a", b"key-1", b"key-2", b"0123456789abcde", b"x" * 30, b"y" * 31, b"z" * 300]
records = st.lists(
    st.tuples(
        st.sampled_from(KEYS),
        st.one_of(st.none(), st.binary(max_size=20), st.just(b"v" * 200)),
        st.integers(-300, 20_000),
        st.sampled_from([(), (("h", None),), (("name", b"value"), ("", b""))]),
    ),
    min_size=1,
    max_size=40,
)
batches = st.lists(
    st.tuples(records, st.sampled_from(Codec), st.booleans(), st.booleans()), min_size=1, max_size=12
)


@settings(
    max_examples=sampled(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches, st.data())
def test_as_a_plain_model(
    tmp_path_factory: pytest.TempPathFactory, drawn: object, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("compact")
    made, written, offset = [], [], 0
    for content, codec, append_time, idempotent in drawn:  # type: ignore[attr-defined]
        rows = [Record(offset + i, NOW + t, k, v, h) for i, (k, v, t, h) in enumerate(content)]
        fields = {"producer_id": 5, "producer_epoch": 1, "base_sequence": offset} if idempotent else {}
        batch = bytes(
            encode_batch(
                rows,
                base_offset=offset,
                codec=codec,
                log_append_time=NOW + 7 if append_time else None,
                **fields,
            )
        )
        made.append(batch)
        written += list(decode_records(batch))
        offset += len(rows)
    starts = {0} | data.draw(st.sets(st.integers(0, len(made) - 1), max_size=4))
    sources = write_segments(folder, made, starts)
    cuts = sorted({0} | data.draw(st.sets(st.integers(0, len(sources) - 1), max_size=3)))
    groups = [sources[a:b] for a, b in zip(cuts, [*cuts[1:], len(sources)], strict=True)]
    done, cleaned = compact(folder, groups, chunk=data.draw(st.sampled_from([256, 4096, 1 << 16])))

    last = {record.key: record.offset for record in written}
    expected = [record for record in written if last[record.key] == record.offset]
    kept = [batch for group in groups for batch in result(folder, group)]
    assert records_of(kept) == expected
    assert done.end == offset
    assert (done.records, done.kept) == (len(written), len(expected))
    for group, each in zip(groups, cleaned, strict=True):
        found = headers_of(result(folder, group))
        assert found[-1].next_offset == group[-1].end
        assert found[0].base_offset >= group[0].base
        assert all(a.next_offset <= b.base_offset for a, b in itertools.pairwise(found))
        if each.changed:
            assert sum(header.size for header in found) == each.size
            assert max(header.max_timestamp for header in found) == each.largest_timestamp
        for batch, header in zip(result(folder, group), found, strict=True):
            stamps = [record.timestamp for record in decode_records(batch)]
            if stamps:
                assert max(stamps) == header.max_timestamp
            original = next(one for one in headers_of(made) if one.last_offset == header.last_offset)
            same = ("base_offset", "codec", "producer_id", "producer_epoch", "base_sequence", "leader_epoch")
            if header.count:
                assert all(getattr(header, name) == getattr(original, name) for name in same)
            tombstones = any(record.value is None for record in decode_records(batch))
            assert bool(header.attributes & DELETE_HORIZON) == tombstones
            assert not tombstones or header.base_timestamp == NOW + DAY_MS

    # Again, a day later: the same but for the tombstones, and nothing is dirty.
    again = [[put_in_place(folder, group)] for group in groups]
    compact(folder, again, first_dirty=offset, now_ms=NOW + DAY_MS)
    left = records_of(batch for group in again for batch in result(folder, group))
    assert left == [record for record in expected if record.value is not None]


def simple(offset: int, *pairs: tuple[bytes, bytes | None], **fields: object) -> bytes:
    rows = [Record(offset + i, NOW + i, key, value) for i, (key, value) in enumerate(pairs)]
    return bytes(encode_batch(rows, base_offset=offset, **fields))  # type: ignore[arg-type]


def test_what_is_clean_already_is_not_written(tmp_path: Path) -> None:
    sources = write_segments(tmp_path, [simple(0, (b"a", b"1")), simple(1, (b"b", b"2"))])
    _, (cleaned,) = compact(tmp_path, [sources])
    assert not cleaned.changed
    assert not list(tmp_path.glob("*.cleaned"))


def test_what_is_dirty_wins_over_what_is_clean(tmp_path: Path) -> None:
    made = [simple(0, (b"a", b"1"), (b"b", b"1")), simple(2, (b"a", b"2"))]
    one, two = write_segments(tmp_path, made, [0, 1])
    compact(tmp_path, [[one], [two]], first_dirty=2)
    assert [(r.offset, r.key) for r in records_of([*result(tmp_path, [one]), *result(tmp_path, [two])])] == [
        (1, b"b"),
        (2, b"a"),
    ]


def test_a_table_too_small_takes_rounds(tmp_path: Path) -> None:
    made = [simple(n, (b"key %6d" % (n % 3000), b"v")) for n in range(9000)]
    sources = write_segments(tmp_path, made, range(0, 9000, 1000))
    first_dirty, rounds = 0, 0
    while first_dirty < 9000:
        done, _ = compact(tmp_path, [[s] for s in sources], first_dirty=first_dirty, table_bytes=200_000)
        sources = [put_in_place(tmp_path, [source]) for source in sources]
        assert first_dirty < done.end
        first_dirty, rounds = done.end, rounds + 1
    assert rounds > 2
    left = records_of(batch for source in sources for batch in result(tmp_path, [source]))
    assert [record.offset for record in left] == list(range(6000, 9000))


def test_keyless_records_go(tmp_path: Path) -> None:
    rows = [Record(0, NOW, None, b"x"), Record(1, NOW, b"k", b"y"), Record(2, NOW, None, None)]
    sources = write_segments(tmp_path, [bytes(encode_batch(rows))])
    compact(tmp_path, [sources])
    assert [record.offset for record in records_of(result(tmp_path, sources))] == [1]


def test_the_last_sequence_of_a_live_producer_stays(tmp_path: Path) -> None:
    fields = {"producer_id": 9, "producer_epoch": 2}
    made = [
        simple(0, (b"a", b"1"), base_sequence=0, **fields),
        simple(1, (b"a", b"2"), base_sequence=1, **fields),
        simple(2, (b"a", b"3"), producer_id=10, producer_epoch=0, base_sequence=0),
        simple(3, (b"a", b"4")),
    ]
    sources = write_segments(tmp_path, made)
    compact(tmp_path, [sources], producers={9: KnownProducer(1, 2)})
    empty, last = headers_of(result(tmp_path, sources))
    assert (empty.producer_id, empty.producer_epoch, empty.base_sequence, empty.last_offset) == (9, 2, 1, 1)
    assert (empty.count, empty.max_timestamp, last.base_offset) == (0, NOW, 3)


def transaction(offset: int, producer: int, *, commit: bool) -> list[bytes]:
    data = simple(
        offset, (b"t", b"%d" % offset), (b"u", b"1"), producer_id=producer, producer_epoch=0, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    marker = bytearray(encode_marker(producer, 0, Marker(commit, 0), timestamp=NOW))
    return [data, bytes(patched(marker, ">q", 0, offset + 2, crc=False))]


def test_aborted_records_go_and_do_not_win(tmp_path: Path) -> None:
    made = [
        simple(0, (b"t", b"kept"), (b"u", b"kept")),
        *transaction(2, 1, commit=False),
        simple(5, (b"x", b"y")),
    ]
    sources = write_segments(tmp_path, made)
    aborted = [AbortedTransaction(1, 2, 4, 5)]
    _, (cleaned,) = compact(tmp_path, [sources], aborted=aborted)
    assert [record.offset for record in records_of(result(tmp_path, sources))] == [0, 1, 5]
    # Data were there, so the marker and its entry stay; the next round finds none, and sets the horizon.
    assert cleaned.transactions == aborted
    assert [h.is_control for h in headers_of(result(tmp_path, sources))] == [False, True, False]
    source = put_in_place(tmp_path, sources)
    _, (cleaned,) = compact(tmp_path, [[source]], first_dirty=6, aborted=aborted)
    assert cleaned.transactions == []
    (marker,) = (h for h in headers_of(result(tmp_path, [source])) if h.is_control)
    assert marker.attributes & DELETE_HORIZON
    assert marker.base_timestamp == NOW + DAY_MS
    source = put_in_place(tmp_path, [source])
    for later, markers in ((DAY_MS - 1, 1), (DAY_MS, 0)):
        compact(tmp_path, [[source]], first_dirty=6, now_ms=NOW + later)
        assert sum(h.is_control for h in headers_of(result(tmp_path, [source]))) == markers


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_after_an_aborted_one_is_judged_by_its_own_end(tmp_path: Path, commit: bool) -> None:
    """The first pass does not read what is clean, nor the marker that ended the first transaction there, whose entry is
    there for one round more."""
    made = [
        simple(0, (b"t", b"first"), (b"u", b"first")),
        *transaction(2, 1, commit=False),
        *transaction(5, 1, commit=commit),
        simple(8, (b"x", b"y")),
    ]
    clean, dirty = write_segments(tmp_path, made, [0, 3])
    aborted = [AbortedTransaction(1, 2, 4, 5), AbortedTransaction(1, 5, 7, 8)][: 1 if commit else 2]
    compact(tmp_path, [[clean]], aborted=aborted[:1])
    clean = put_in_place(tmp_path, [clean])
    groups = [[clean], [dirty]]
    compact(tmp_path, groups, first_dirty=5, aborted=aborted)
    left = records_of(batch for group in groups for batch in result(tmp_path, group))
    assert [record.offset for record in left] == ([5, 6, 8] if commit else [0, 1, 8])


steps = st.lists(
    st.one_of(
        st.tuples(st.just("records"), st.sampled_from([0, 1, 1, 2]), st.sampled_from("abc")),
        st.tuples(st.just("end"), st.sampled_from([1, 1, 2]), st.booleans()),
        st.tuples(st.just("round"), st.sampled_from([0, 1, DAY_MS]), st.just(True)),
    ),
    min_size=8,
    max_size=40,
)


@pytest.mark.long
@settings(
    max_examples=sampled(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps)
def test_readers_of_committed_records_find_the_same_after_any_rounds(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, int, object]]
) -> None:
    """Every batch is a segment of its own; producer 0 has no transactions. A round compacts what lies before the first
    open transaction, some time after the last one."""
    folder = tmp_path_factory.mktemp("rounds")
    segments: list[SourceSegment] = []
    index: dict[int, list[AbortedTransaction]] = {}  # of each segment, by its base offset
    began: dict[int, int] = {}
    waiting: dict[int, dict[str, int]] = {}
    expected: dict[str, int] = {}  # the last committed record of each key
    offset, first_dirty, now_ms = 0, 0, NOW

    def append(batch: bytes) -> None:
        nonlocal offset
        segments.extend(write_segments(folder, [batch]))
        offset += 1

    def run_round() -> None:
        nonlocal segments, first_dirty
        end = min(began.values(), default=offset)
        todo = [segment for segment in segments if segment.end <= end]
        if not todo:
            return
        aborted = [each for entries in index.values() for each in entries if each.first_offset < todo[-1].end]
        done, cleaned = compact(
            folder, [[each] for each in todo], first_dirty=first_dirty, now_ms=now_ms, aborted=aborted
        )
        first_dirty = done.end
        for each in cleaned:
            if each.changed:
                index[todo[each.group].base] = each.transactions
        segments = [put_in_place(folder, [each]) for each in todo] + segments[len(todo) :]

    for kind, what, how in [*drawn, ("round", 1, True), ("round", DAY_MS, True), ("round", DAY_MS, True)]:
        if kind == "round":
            now_ms += what
            run_round()
        elif kind == "records":
            key = str(how)
            fields = {
                "producer_id": what,
                "producer_epoch": 0,
                "base_sequence": offset,
                "transactional": True,
            }
            if what:
                began.setdefault(what, offset)
                waiting.setdefault(what, {})[key] = offset
            else:
                expected[key] = offset
            append(simple(offset, (key.encode(), b"%d" % offset), **(fields if what else {})))
        elif what in began:
            ended = waiting.pop(what)
            if how:
                expected |= {key: max(at, expected.get(key, -1)) for key, at in ended.items()}
            else:
                index[offset] = [AbortedTransaction(what, began[what], offset, offset + 1)]
            del began[what]
            marker = bytearray(encode_marker(what, 0, Marker(bool(how), 0), timestamp=NOW))
            append(bytes(patched(marker, ">q", 0, offset, crc=False)))

    skipped = [each for entries in index.values() for each in entries]
    found: dict[str, int] = {}
    for segment in segments:
        for batch in result(folder, [segment]):
            header, producer = parse(batch), parse(batch).producer_id
            if header.is_control or (producer in began and header.base_offset >= began[producer]):
                continue
            if not any(
                each.producer_id == producer and each.first_offset <= header.base_offset <= each.last_offset
                for each in skipped
            ):
                found |= {
                    record.key.decode(): record.offset for record in decode_records(batch) if record.key
                }
    assert found == expected


def test_a_commit_marker_stays_as_long_as_its_data(tmp_path: Path) -> None:
    made = [*transaction(0, 1, commit=True), simple(3, (b"t", b"new")), simple(4, (b"u", b"new"))]
    sources = write_segments(tmp_path, made)
    compact(tmp_path, [sources])
    assert [record.offset for record in records_of(result(tmp_path, sources))] == [3, 4]
    source = put_in_place(tmp_path, sources)
    compact(tmp_path, [[source]], first_dirty=5)
    assert headers_of(result(tmp_path, [source]))[0].attributes & DELETE_HORIZON


@pytest.mark.parametrize("at", [20, 30, 70])
def test_damage_is_named(tmp_path: Path, at: int) -> None:
    made = [simple(0, (b"a", b"1")), simple(1, (b"a", b"2"))]
    sources = write_segments(tmp_path, made)
    path = tmp_path / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[at] ^= 0x55
    path.write_bytes(data)
    with pytest.raises(DamagedDataError, match=r"at byte (0|70):"):
        compact(tmp_path, [sources])
    assert not list(tmp_path.glob("*.cleaned"))


def test_records_that_are_no_records(tmp_path: Path) -> None:
    """A batch whose CRC is right and whose records are not: a topic that was not compacted takes such."""
    good = simple(0, (b"abc", b"1"), (b"abc", b"2"))
    for at in range(61, len(good)):
        bad = bytes(patched(good, ">B", at, good[at] ^ 0xFF))
        sources = write_segments(tmp_path, [bad, simple(2, (b"abc", b"3"))])
        try:
            compact(tmp_path, [sources])
        except DamagedDataError:
            continue
        assert parse(result(tmp_path, sources)[-1]).base_offset == 2
        for path in tmp_path.glob("*.cleaned"):
            path.unlink()
