"""The runs of sound batches that are found in a damaged log file."""

from pathlib import Path

from leafcuttr.offline.placing import Placed
from leafcuttr.offline.sound_ranges import SoundRange, sound_ranges
from leafcuttr.wire.records import Record, encode_batch


def batch(base_offset: int, records: int = 2) -> bytes:
    made = [Record(base_offset + number, 1, None, b"value") for number in range(records)]
    return bytes(encode_batch(made, base_offset=base_offset, partition_leader_epoch=0))


def written(folder: Path, *parts: bytes) -> Path:
    path = folder / f"{0:020d}.log"
    path.write_bytes(b"".join(parts))
    return path


def test_a_sound_file_is_one_run(tmp_path: Path) -> None:
    whole = batch(0) + batch(2) + batch(4)
    assert sound_ranges(written(tmp_path, whole), 0) == [SoundRange(0, len(whole), 0, 6, 0)]


def test_damage_parts_two_runs(tmp_path: Path) -> None:
    damaged = bytearray(batch(2))
    damaged[-1] ^= 1
    size = len(damaged)
    path = written(tmp_path, batch(0), bytes(damaged), batch(4))
    first, second = SoundRange(0, size, 0, 2, 0), SoundRange(2 * size, 3 * size, 4, 6, 0)
    assert sound_ranges(path, 0) == [first, second]
    assert sound_ranges(path, 0, check_crc=False) == [SoundRange(0, 3 * size, 0, 6, 0)]


def test_a_displaced_batch_belongs_to_its_run(tmp_path: Path) -> None:
    whole = [batch(0), batch(200), batch(4), batch(6)]
    displaced: list[Placed] = []
    found = sound_ranges(written(tmp_path, *whole), 0, displaced=displaced)
    assert found == [SoundRange(0, len(b"".join(whole)), 0, 8, 0)]
    assert [(one.header.base_offset, one.claimed) for one in displaced] == [(2, 200)]


def test_nothing_is_sound_in_an_empty_file_or_in_rubbish(tmp_path: Path) -> None:
    assert sound_ranges(written(tmp_path), 0) == []
    assert sound_ranges(written(tmp_path, b"rubbish" * 100), 0) == []
