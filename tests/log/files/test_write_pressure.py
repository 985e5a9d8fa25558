"""When a write on the loop would wait for the disk."""

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest

from leafcuttr.log.files.write_pressure import (
    SAMPLE_BYTES,
    SLOW_FOR_S,
    SLOW_WRITE_S,
    WritePressure,
    run_delay_s,
)
from support.logs import batch, make_log, stage_here
from support.loop_disk import loop_disk
from support.waiting import until

FREEZE, THAW = 0xC0045877, 0xC0045878  # FIFREEZE, FITHAW


class Hand:
    """A clock, or another reading that goes up."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Machine:
    """One on which writes take as long as a test says."""

    def __init__(self) -> None:
        self.time, self.delay, self.looks = Hand(), Hand(), 0
        self.pressure = WritePressure(os.devnull, self.time, self._run_delay)

    def _run_delay(self) -> float:
        self.looks += 1
        return self.delay()

    def write(self, *, on_disk: float = 0.0, without_processor: float = 0.0) -> bool:
        """Whether the write was on the loop; by a worker it says nothing."""
        if self.pressure.stalls(10):
            return False
        took = on_disk + without_processor
        self.time.now += took
        self.delay.now += without_processor
        self.pressure.wrote(took)
        return True


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


def test_a_write_that_got_no_processor_was_not_slow() -> None:
    machine = Machine()
    for _ in range(5):
        assert machine.write(without_processor=0.5)
    assert machine.write(without_processor=0.5, on_disk=SLOW_WRITE_S * 0.9), "the rest of it was not long"
    assert machine.write()


def test_a_slow_disk_is_noticed_at_once_on_a_busy_machine() -> None:
    machine = Machine()
    assert machine.write()
    machine.delay.now += 0.2  # before the write, or in it: nothing tells
    assert machine.write(on_disk=0.25, without_processor=0.2)
    assert not machine.write()
    machine.time.now += SLOW_FOR_S
    assert machine.write()


def test_what_may_have_been_either_is_checked_closely() -> None:
    machine = Machine()
    assert machine.write()
    for _ in range(2):
        machine.time.now += 0.03
        machine.delay.now += 0.03
        assert machine.write(on_disk=0.03), "explained by what was before it"
        machine.time.now += 0.03
        machine.delay.now += 0.03
        assert machine.write(on_disk=0.03), "read anew before it"
        assert not machine.write()
        machine.time.now += 2 * SLOW_FOR_S
        assert machine.write()  # not closely any more


def test_the_write_after_one_that_is_explained() -> None:
    machine = Machine()
    assert machine.write()
    assert machine.write(without_processor=0.1)
    assert machine.write(on_disk=0.05), "at once, so that nothing was read between"
    assert not machine.write()


def test_nothing_is_explained_by_what_was_before_the_first_look() -> None:
    machine = Machine()
    machine.pressure.wrote(0.5)
    assert not machine.write()


def test_the_run_delay_is_read_rarely() -> None:
    machine = Machine()

    def looks(writes: int, apart_s: float) -> int:
        before = machine.looks
        for _ in range(writes):
            machine.write()
            machine.time.now += apart_s
        return machine.looks - before

    assert looks(1000, 0.0001) == 1
    machine.write(without_processor=1.0)
    assert looks(1000, 0.0001) <= 101, "for as long as it is in doubt, once in a millisecond at the most"
    machine.time.now += SLOW_FOR_S
    assert looks(1000, 0.0001) == 1


def test_dirty_pages_are_not_read_more_often_for_it(tmp_path: Path) -> None:
    time, delay = Hand(), Hand()
    pressure = WritePressure(vmstat(tmp_path / "v", 100), time, delay)
    assert not pressure.stalls(10)
    delay.now += 1
    pressure.wrote(1.0)
    vmstat(tmp_path / "v", 1900)
    time.now += 0.05
    assert not pressure.stalls(10)
    time.now += 0.1
    assert pressure.stalls(10)


def test_where_the_kernel_does_not_tell_each_slow_write_counts() -> None:
    pressure = WritePressure(os.devnull, Hand(), lambda: 0.0)
    pressure.stalls(10)
    pressure.wrote(0.5)
    assert pressure.stalls(10)


needs_run_delay = pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="no schedstat")


@needs_run_delay
def test_the_run_delay_is_that_of_the_thread() -> None:
    thread = threading.get_native_id()
    before = run_delay_of(thread)
    assert before <= run_delay_s() <= run_delay_of(thread)


@needs_run_delay
def test_sleep_is_no_run_delay() -> None:
    began, before = monotonic(), run_delay_s()
    sleep(0.03)  # what is tested is that it is not taken for a delay
    delay = run_delay_s() - before
    assert monotonic() - began - delay >= 0.03 - 1e-4


@contextmanager
def busy(processor: int) -> Iterator[None]:
    """Another process has this processor, as far as it is given it."""
    said = f"import os\nos.sched_setaffinity(0, [{processor}])\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", said], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            other.stdout.readline()
            yield
        finally:
            other.kill()


@needs_run_delay
def test_a_thread_that_another_process_keeps_from_the_processor_sees_it() -> None:
    def look() -> None:
        processor = min(os.sched_getaffinity(0))
        os.sched_setaffinity(0, [processor])
        pressure = WritePressure(os.devnull)
        with busy(processor):
            assert not pressure.stalls(10)
            began, before = monotonic(), run_delay_s()
            while run_delay_s() - before < 5 * SLOW_WRITE_S:
                pass
            lost = run_delay_s() - before
            assert 5 * SLOW_WRITE_S <= lost <= monotonic() - began
            pressure.wrote(lost)
            assert not pressure.stalls(10)

    with ThreadPoolExecutor(1) as thread:  # what is done to it is over with it
        thread.submit(look).result()


@needs_run_delay
def test_a_disk_that_takes_no_writes_for_a_while(tmp_path: Path) -> None:
    """A file system that is frozen: writers sleep in the kernel, as they do when there are too many dirty pages."""
    with loop_disk(tmp_path) as disk, ThreadPoolExecutor(1) as pool:
        log = make_log(disk.folder / "log", pressure=WritePressure(os.devnull))
        stage_here(log, batch())
        assert log.write().done
        thread: list[int] = []

        def write() -> None:
            # As the loop does it: both looks in the thread that writes.
            thread.append(threading.get_native_id())
            assert not log.resources.pressure.stalls(SAMPLE_BYTES)
            stage_here(log, batch())
            assert log.write().done
            assert log.resources.pressure.stalls(10), "noticed by the first write"

        descriptor = os.open(disk.folder, os.O_RDONLY)
        fcntl.ioctl(descriptor, FREEZE)
        frozen = True
        try:
            written = pool.submit(write)
            until(lambda: bool(thread) and state_of(thread[0]) == "D", "the write")
            sleep(2 * SLOW_WRITE_S + run_delay_of(thread[0]))  # at least: that is what the disk takes
            fcntl.ioctl(descriptor, THAW)
            frozen = False
            written.result()
        finally:
            if frozen:
                fcntl.ioctl(descriptor, THAW)
            os.close(descriptor)


def state_of(thread: int) -> str:
    return Path(f"/proc/self/task/{thread}/stat").read_text().rpartition(")")[2].split()[0]


def run_delay_of(thread: int) -> float:
    return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[1]) / 1e9


def test_without_the_file_only_slow_writes_tell(tmp_path: Path) -> None:
    assert not WritePressure(str(tmp_path / "none"), Hand()).stalls(1 << 30)


def test_this_machine_is_read(tmp_path: Path) -> None:
    assert WritePressure().stalls(1 << 30) in (True, False)
