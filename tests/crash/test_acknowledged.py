"""The readers of files that are not ours agree with what was written, and the comparison names what is missing."""

import os
import shutil
import struct
from pathlib import Path

import pytest
import snappy

from crash import acknowledged, foreign
from crash.acknowledged import NOT_TOLD, Due, Files
from crash.foreign import Record
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record as Written
from leafcuttr.wire.records import encode_batch
from support import jars
from support.logs import NOW, append, append_marker, make_log

JAVA = pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Several segments: every codec, keys and values that are not there, headers; transactions, one left open."""
    path = tmp_path / "data" / "t-0"
    log = make_log(path, segment_bytes=1200)
    for number in range(20):
        records = [
            Written(0, NOW, b"key %d" % number, b"value %d" % number, (("a", b"1"), ("b", None))),
            Written(1, NOW, None, b"only a value"),
            Written(2, NOW, b"only a key", None),
        ]
        append(log, encode_batch(records, codec=Codec(number % 5)), NOW)
    for producer in (7, 8, 9):
        fields = {"producer_id": producer, "producer_epoch": 2, "base_sequence": 0, "transactional": True}
        append(log, encode_batch([Written(0, NOW, None, b"by %d" % producer)], **fields), NOW)
    append_marker(log, 8, 2, commit=True, coordinator_epoch=5, now_ms=NOW)
    append_marker(log, 7, 2, commit=False, coordinator_epoch=5, now_ms=NOW)
    log.seal()
    assert len(foreign.log_files(path)) >= 3
    return path


def written() -> list[Record]:
    found = []
    for number in range(20):
        names = [(b"key %d" % number, b"value %d" % number), (None, b"only a value"), (b"only a key", None)]
        for index, (key, value) in enumerate(names):
            found.append(
                Record(number * 3 + index, key, value, -1, -1, False, None, ("a", "b") if not index else ())
            )
    found += [Record(60 + n, None, b"by %d" % (7 + n), 7 + n, 2, True, None) for n in range(3)]
    found += [Record(63, None, None, 8, 2, True, True), Record(64, None, None, 7, 2, True, False)]
    return found


def without_markers(records: list[Record]) -> list[Record]:
    return [each if each.commits is None else each._replace(key=None, value=None) for each in records]


def test_kio_reads_what_was_written(folder: Path) -> None:
    assert without_markers(foreign.by_kio(folder)) == written()


@pytest.mark.long
@JAVA
def test_kafka_reads_what_was_written(folder: Path) -> None:
    assert foreign.by_kafka([folder]) == {"t-0": written()}


def test_kafka_is_asked_for_all_or_for_some(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "missing", lambda: None)
    monkeypatch.setattr(foreign, "by_kafka", lambda folders: {each.name: written() for each in folders})
    for number in (1, 2, 3):
        shutil.copytree(folder, folder.with_name(f"t-{number}"))
    some = Files(folder.parent, ["t"], 5, kafka_reads=2)
    assert some.notes == [
        "260 records of 4 partitions read back by kio from the files",
        "130 records read back by DumpLogSegments: t-0, t-1 (chosen by seed 5)",
    ]
    whole = Files(folder.parent, ["t"], 5, kafka_reads=acknowledged.ALL)
    assert whole.notes[1] == "260 records read back by DumpLogSegments: all of them"


def test_without_java_kio_reads_alone_and_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "missing", lambda: "java is not installed")
    files = Files(folder.parent, ["t"], 5, kafka_reads=acknowledged.ALL)
    assert files.notes[1] == "kio alone has read them: java is not installed"
    assert len(files.partition("t", 0)) == 65


def test_readers_that_do_not_agree_fail(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "missing", lambda: None)
    other = [*written()[:-1], written()[-1]._replace(commits=True)]
    monkeypatch.setattr(foreign, "by_kafka", lambda folders: {"t-0": other})
    with pytest.raises(AssertionError, match="t-0: kio and DumpLogSegments do not read the same"):
        Files(folder.parent, ["t"], 5, kafka_reads=acknowledged.ALL)


def test_snappy_in_both_forms() -> None:
    text = b"leaf " * 50_000
    frames = [bytes(snappy.compress(text[at : at + 32_768])) for at in range(0, len(text), 32_768)]
    framed = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    assert foreign.unsnappy(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + framed) == text
    assert foreign.unsnappy(bytes(snappy.compress(text))) == text


@pytest.mark.parametrize("tail", [bytes(5), bytes(500), b"\x00" * 11 + b"\x50" + b"torn" * 15])
def test_what_is_no_whole_batch_ends_the_reading(folder: Path, tail: bytes) -> None:
    with foreign.log_files(folder)[-1].open("ab") as file:
        file.write(tail)
    assert len(foreign.by_kio(folder)) == 65


@pytest.mark.parametrize("number", range(5))
def test_a_batch_that_is_not_sound_is_named(folder: Path, number: int) -> None:
    first = foreign.log_files(folder)[0]
    data = bytearray(first.read_bytes())
    at = 0
    for _ in range(number):
        at += 12 + struct.unpack_from(">i", data, at + 8)[0]
    data[at + 65] ^= 1
    first.write_bytes(data)
    with pytest.raises(AssertionError) as said:
        foreign.by_kio(folder)
    assert str(said.value) == f"{first}: byte {at}: kio cannot read the batch: " + (
        "Checksum mismatch when reading record batch"
    )


def test_committed_follows_from_the_markers(folder: Path) -> None:
    assert [record.offset for record in acknowledged.committed(foreign.by_kio(folder))] == [*range(60), 61]


# The comparison

STORED = [Record(n, b"k%d" % n, b"v%d" % n, -1, -1, False, None) for n in range(5)]
DUE = [Due(n, b"k%d" % n, b"v%d" % n) for n in range(5)]


def said(due: list[Due], stored: list[Record]) -> list[str]:
    return [str(fault) for fault in acknowledged.every("t", 3, due, stored)]


def test_what_is_there_is_no_fault() -> None:
    assert said(DUE, STORED) == []
    assert said([DUE[0], DUE[1]._replace(offset=NOT_TOLD), DUE[2]], STORED) == []


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        pytest.param(STORED[:2] + STORED[3:], "nothing is there", id="lost"),
        pytest.param([STORED[2]._replace(key=b"x")], "there is key b'x', value b'v2'", id="another key"),
        pytest.param([STORED[2]._replace(key=None)], "there is key None, value b'v2'", id="no key"),
        pytest.param([STORED[2]._replace(value=b"x")], "there is key b'k2', value b'x'", id="another value"),
        pytest.param([STORED[2]._replace(value=None)], "there is key b'k2', value None", id="no value"),
        pytest.param([STORED[2]._replace(commits=True)], "a control record is there", id="a marker"),
        pytest.param([STORED[2]._replace(offset=9)], "nothing is there", id="elsewhere"),
    ],
)
def test_what_is_not_there_is_named(stored: list[Record], found: str) -> None:
    assert said([DUE[2]], stored) == [
        f"topic t, partition 3, offset 2: acknowledged was key b'k2', value b'v2'; {found}"
    ]


def test_a_record_whose_offset_was_not_told_is_named_by_its_neighbours() -> None:
    untold = DUE[2]._replace(offset=NOT_TOLD)
    words = "acknowledged was key b'k2', value b'v2'; it is nowhere in the partition"
    assert said([DUE[1], untold, DUE[3]], STORED[:2] + STORED[3:]) == [
        f"topic t, partition 3, offset not told (between 1 and 3): {words}"
    ]
    assert said([DUE[1], untold], STORED[:2]) == [
        f"topic t, partition 3, offset not told (behind 1): {words}"
    ]


def test_there_are_at_most_twenty_lines_and_the_number_of_all() -> None:
    due = [Due(n, None, b"x" * 100) for n in range(25)]
    with pytest.raises(AssertionError) as failed:
        acknowledged.check([*acknowledged.every("t", 0, due, []), *acknowledged.every("u", 1, DUE[:1], [])])
    first, *lines, last = str(failed.value).splitlines()
    assert first == "26 records are not in the files as they were acknowledged, in t-0, u-1:"
    assert len(lines) == 20
    assert lines[0].endswith(f"value {b'x' * 40!r}... (100 bytes); nothing is there")
    assert last == "... and 6 more"
    acknowledged.check([])


@pytest.mark.parametrize(
    ("last", "fault"),
    [
        pytest.param((4, b"4"), "", id="what was acknowledged"),
        pytest.param((6, b"6"), "", id="something newer"),
        pytest.param(None, "the key is nowhere in the partition", id="nothing"),
        pytest.param(
            (3, b"3"), "the last of the key is at offset 3: there is key b'k', value b'3'", id="older"
        ),
        pytest.param(
            (4, b"x"), "the last of the key is at offset 4: there is key b'k', value b'x'", id="another"
        ),
        pytest.param(
            (6, b"3"), "the last of the key is at offset 6: there is key b'k', value b'3'", id="back"
        ),
        pytest.param(
            (5, b"4"), "the last of the key is at offset 5: there is key b'k', value b'4'", id="elsewhere"
        ),
    ],
)
def test_the_latest_of_a_key(last: tuple[int, bytes] | None, fault: str) -> None:
    stored = [] if last is None else [Record(last[0], b"k", last[1], -1, -1, False, None)]
    found = [
        str(each)
        for each in acknowledged.latest(
            "t", 0, {b"k": Due(4, b"k", b"4")}, stored,
            is_newer=lambda key, record: record.value == b"6", may_be_gone=lambda key: False,
        )
    ]  # fmt: skip
    head = "topic t, partition 0, offset 4: acknowledged was key b'k', value b'4'; "
    assert found == ([head + fault] if fault else [])


def test_a_key_may_be_gone_behind_a_tombstone() -> None:
    due = {b"k": Due(4, b"k", b"4")}
    assert not [
        *acknowledged.latest("t", 0, due, [], is_newer=lambda *_: False, may_be_gone=lambda key: True)
    ]


def test_what_nobody_has_sent_is_named() -> None:
    found = [*acknowledged.nothing_else("t", 0, STORED, lambda record: record.offset != 3)]
    assert [str(each) for each in found] == [
        "topic t, partition 0, offset 3: there is key b'k3', value b'v3', which nobody has sent"
    ]


def test_a_lost_tail_of_a_file_is_named(folder: Path) -> None:
    due = [Due(record.offset, record.key, record.value) for record in written()[:60]]
    path = [path for path in foreign.log_files(folder) if int(path.stem) < 60][-1]
    base = int(path.stem)
    assert base
    os.truncate(path, 0)
    lost = [fault.offset for fault in acknowledged.every("t", 0, due, foreign.by_kio(folder))]
    assert lost == [*range(base, 60)]
