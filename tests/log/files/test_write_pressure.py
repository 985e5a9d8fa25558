"""When a write on the loop would wait for the disk."""

from pathlib import Path

from leafcuttr.log.files.write_pressure import SAMPLE_BYTES, WritePressure


class Hand:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def vmstat(path: Path, dirty: int, writeback: int = 0) -> str:
    path.write_text(
        f"nr_free_pages 9\nnr_dirty {dirty}\nnr_writeback {writeback}\nnr_writeback_temp 99999\n"
        "nr_dirty_threshold 2000\nnr_dirty_background_threshold 1000\n"
    )
    return str(path)


def test_dirty_pages(tmp_path: Path) -> None:
    time = Hand()
    pressure = WritePressure(vmstat(tmp_path / "v", 100), time)
    assert not pressure.stalls(SAMPLE_BYTES)
    vmstat(tmp_path / "v", 900, 600)
    assert not pressure.stalls(SAMPLE_BYTES), "looked at again only after a while"
    time.now += 0.2
    assert pressure.stalls(10)
    vmstat(tmp_path / "v", 100)
    time.now += 0.2
    assert pressure.stalls(10), "few bytes: the last look counts"
    time.now += 2
    assert not pressure.stalls(10)


def test_a_slow_write_counts_for_some_seconds(tmp_path: Path) -> None:
    time = Hand()
    pressure = WritePressure(vmstat(tmp_path / "v", 1), time)
    pressure.wrote(0.001)
    assert not pressure.stalls(1)
    pressure.wrote(0.5)
    assert pressure.stalls(1)
    time.now += 5
    assert not pressure.stalls(1)


def test_without_the_file_only_slow_writes_tell(tmp_path: Path) -> None:
    assert not WritePressure(str(tmp_path / "none"), Hand()).stalls(1 << 30)


def test_this_machine_is_read(tmp_path: Path) -> None:
    assert WritePressure().stalls(1 << 30) in (True, False)
