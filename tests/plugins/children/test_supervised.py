"""The life of a child, without a broker."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr.plugins.children.output import BURST, RATE
from leafcuttr.plugins.children.supervised import ChildOptions, SupervisedChild, open_child
from leafcuttr.plugins.services.backoff import Backoff
from leafcuttr.state.plugged import Plugged
from leafcuttr_sdk import ChildError, Restart
from plugins.children.conftest import FAMILY, is_gone, pids_in, python
from support.waiting import eventually

MB = 1 << 20
SLEEPS = "import time; time.sleep(600)"


@pytest.fixture
def plugged() -> Plugged:
    return Plugged()


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long a child had been up before each pause, which is short."""
    found: list[float] = []

    def pause_s(_: Backoff, up_s: float) -> float:
        found.append(up_s)
        return 0.01

    monkeypatch.setattr(Backoff, "pause_s", pause_s)
    return found


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, "leafcuttr.plugin.mine"):
        yield caplog


def child(
    plugged: Plugged, command: list[str], name: str = "one", **options: Any
) -> AbstractAsyncContextManager[SupervisedChild]:
    given: dict[str, Any] = {
        "environment": {},
        "folder": None,
        "stop_s": 10.0,
        "memory_bytes": None,
        "restart": Restart.NEVER,
    } | options
    return open_child(plugged, "mine", ChildOptions(name, command, **given))


async def test_from_its_start_to_the_end_of_the_block(plugged: Plugged, tmp_path: Path) -> None:
    async with child(plugged, python(FAMILY, tmp_path)) as one:
        assert one.up
        assert (one.name, one.trouble, one.restarts) == ("one", "", 0)
        assert plugged.children_of("mine") == [one]
        assert plugged.children_of("other") == []
        pids = await eventually(lambda: pids_in(tmp_path), "the family")
        assert one.pid == pids[0]
    assert all(map(is_gone, pids))
    assert not one.up
    assert one.pid is None
    assert plugged.children == {}


async def test_what_it_prints_is_logged_line_by_line(plugged: Plugged, log: pytest.LogCaptureFixture) -> None:
    program = "import os, sys; print('out'); print('err', file=sys.stderr); os.write(1, b'no end')"
    async with child(plugged, python(program)) as one:
        assert await one.ended() == 0
    assert log.messages == ["one: out", "one: err", "one: no end"]
    assert {record.name for record in log.records} == {"leafcuttr.plugin.mine"}
    assert (one.trouble, one.is_done) == ("", True)


async def test_environment_and_folder(
    plugged: Plugged, tmp_path: Path, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings of the broker, which may be passwords, are not among the variables."""
    monkeypatch.setenv("KAFKA_SSL_KEY_PASSWORD", "secret")
    monkeypatch.setenv("LEAFCUTTR_CRASH_POINT", "x")
    monkeypatch.setenv("KEPT", "kept")
    monkeypatch.setenv("GONE", "gone")
    program = (
        "import os; print(os.getcwd(), sorted(n for n in os.environ if 'KAFKA' in n or 'CRASH' in n), "
        "*map(os.environ.get, ('KEPT', 'GONE', 'NEW')))"
    )
    new = {"NEW": "new", "GONE": None, "NEVER": None}
    async with child(plugged, python(program), environment=new, folder=tmp_path) as one:
        await one.ended()
    assert log.messages == [f"one: {tmp_path} [] kept None new"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("status", "restart", "again"),
    [
        (0, Restart.ALWAYS, True),
        (3, Restart.ALWAYS, True),
        (0, Restart.ON_FAILURE, False),
        (3, Restart.ON_FAILURE, True),
        (0, Restart.NEVER, False),
        (3, Restart.NEVER, False),
    ],
)
async def test_when_it_is_started_again(
    plugged: Plugged,
    tmp_path: Path,
    status: int,
    restart: Restart,
    again: bool,
    pauses: list[float],
    log: pytest.LogCaptureFixture,
) -> None:
    program = (
        "import os, sys, time\n"
        "if os.path.exists('second'): time.sleep(600)\n"
        "open('second', 'w').close()\n"
        "print('why')\n"
        f"raise SystemExit({status})"
    )
    ended = f"it ended with status {status}" + (" (why)" if status else "")
    async with child(plugged, python(program), restart=restart, folder=tmp_path) as one:
        if again:
            await eventually(lambda: one.restarts == 1 and one.up, "the second start")
            assert (one.trouble, one.is_done) == ("", False)
            assert len(pauses) == 1
            assert (
                f"the child one of plugin mine: {ended}; it is started again in 0.0 s (restart 1)" in log.text
            )
            assert log.messages[-1] == "the child one of plugin mine is up again"
        else:
            assert await one.ended() == status
            assert (one.up, one.restarts, one.is_done) == (False, 0, status == 0)
            assert one.trouble == (ended if status else "")
            assert ("it is not started again" in log.text) is bool(status)


async def test_a_final_status_is_the_end(plugged: Plugged, log: pytest.LogCaptureFixture) -> None:
    final = frozenset({2, 3})
    program = "print('why'); raise SystemExit(3)"
    async with child(plugged, python(program), restart=Restart.ALWAYS, final_statuses=final) as one:
        assert await one.ended() == 3
        assert (one.up, one.restarts, one.is_done) == (False, 0, False)
        assert one.trouble == "it ended with status 3 (why)"
        assert "it is not started again" in log.text


async def test_other_statuses_are_not_final(plugged: Plugged) -> None:
    program = "raise SystemExit(1)"
    final = frozenset({2, 3})
    async with child(plugged, python(program), restart=Restart.ALWAYS, final_statuses=final) as one:
        await eventually(lambda: one.restarts > 1, "the third start")


async def test_a_signal_is_named(plugged: Plugged) -> None:
    async with child(plugged, python("import os; os.kill(os.getpid(), 6)")) as one:
        assert await one.ended() == -signal.SIGABRT
        assert one.trouble == "it was ended by SIGABRT"


async def test_a_keeper_that_is_killed_is_started_again(plugged: Plugged, tmp_path: Path) -> None:
    async with child(plugged, python(FAMILY, tmp_path), restart=Restart.ON_FAILURE) as one:
        pids = await eventually(lambda: pids_in(tmp_path), "the family")
        for name in ("program", "child", "daemon"):
            (tmp_path / name).unlink()
        keeper = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(keeper, signal.SIGKILL)
        await eventually(lambda: one.restarts == 1 and one.up, "the second start")
        await eventually(lambda: all(map(is_gone, pids[:2])), "the end of the first")
        os.kill(pids[2], signal.SIGKILL)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "No such file or directory: /no/such"),
        ({"folder": "/no/folder"}, "No such file or directory: /no/folder"),
        ({"folder": "/etc/passwd"}, "Not a directory: /etc/passwd"),
    ],
)
async def test_one_that_cannot_be_started(plugged: Plugged, options: dict[str, Any], why: str) -> None:
    with pytest.raises(ChildError, match=f"^the child one of plugin mine: it cannot be started: {why}$"):
        async with child(plugged, ["/no/such"], restart=Restart.ALWAYS, **options):
            pass
    assert plugged.children == {}


async def test_one_that_cannot_be_started_again_is_tried_on(
    plugged: Plugged, tmp_path: Path, pauses: list[float]
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nrm program\nexit 1\n")
    program.chmod(0o755)
    async with child(plugged, [str(program)], restart=Restart.ON_FAILURE, folder=tmp_path) as one:
        await eventually(lambda: one.restarts >= 2, "a second failure")
        assert one.trouble == f"it cannot be started: No such file or directory: {program}"
        assert not one.up


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"command": []}, "the child 'one' has an empty command"),
        ({"stop_s": 0}, "stop_s=0: it has to be a number of seconds above 0"),
        ({"stop_s": float("nan")}, "stop_s=nan"),
        ({"memory_bytes": 0}, "memory_bytes=0: it has to be a number of bytes above 0"),
    ],
)
async def test_what_is_refused(plugged: Plugged, options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        async with child(plugged, **({"command": ["x"]} | options)):
            pass


async def test_a_name_is_taken_once(plugged: Plugged) -> None:
    async with child(plugged, python(SLEEPS)), child(plugged, python(SLEEPS), "two"):
        with pytest.raises(ValueError, match="plugin mine has a child 'one' already"):
            async with child(plugged, python(SLEEPS)):
                pass
        assert len(plugged.children) == 2


STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + FAMILY


async def test_one_that_does_not_end_is_killed_after_its_time(
    plugged: Plugged, tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    async with child(plugged, python(STUBBORN, tmp_path), stop_s=0.2, restart=Restart.ALWAYS) as one:
        pids = await eventually(lambda: pids_in(tmp_path), "the family")
    assert all(map(is_gone, pids))
    assert log.messages == ["the child one of plugin mine has not ended 0.2 s after SIGTERM: it is killed"]
    assert await one.ended() == -signal.SIGKILL
    assert one.restarts == 0


ENDS_WELL = """
import signal, sys, time
def end(*_):
    time.sleep(0.2)
    print("done")
    raise SystemExit(4)
signal.signal(signal.SIGTERM, end)
print("ready")
time.sleep(600)
"""


@pytest.mark.parametrize("how", ["cancelled", "raised"])
async def test_a_block_that_is_cut_short_waits_for_it(
    plugged: Plugged, how: str, log: pytest.LogCaptureFixture
) -> None:
    class Raised(Exception):
        pass

    async def block(scope: trio.CancelScope) -> None:
        async with child(plugged, python(ENDS_WELL), restart=Restart.ALWAYS):
            await eventually(lambda: "one: ready" in log.messages, "its start")
            if how == "raised":
                raise Raised
            scope.cancel()
            await trio.sleep_forever()

    with trio.CancelScope() as scope:
        if how == "raised":
            with pytest.raises(Raised):
                await block(scope)
        else:
            await block(scope)
    assert scope.cancelled_caught is (how == "cancelled")
    assert log.messages == ["one: ready", "one: done"]


def own_children() -> set[str]:
    """Processes that this one has started, by number; those that have ended and wait for it too."""
    return {
        number for tasks in Path("/proc/self/task").glob("*/children") for number in tasks.read_text().split()
    }


async def test_one_that_is_cancelled_while_it_starts_leaves_nothing(plugged: Plugged) -> None:
    before = own_children()
    for after in (0, 0.001, 0.005, 0.01, 0.02, 0.05):
        with trio.move_on_after(after):
            async with child(plugged, python(SLEEPS)):
                await trio.sleep_forever()
        assert plugged.children == {}
    assert own_children() <= before


async def test_a_pause_ends_with_the_block(plugged: Plugged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "pause_s", lambda *_: 600.0)
    async with child(plugged, python("raise SystemExit(1)"), restart=Restart.ALWAYS) as one:
        await eventually(lambda: one.trouble or None, "its end")
        assert one.trouble == "it ended with status 1"
        assert not one.up


async def test_too_much_memory(plugged: Plugged, log: pytest.LogCaptureFixture) -> None:
    program = "import time\nkept = bytearray(b'x' * (200 << 20))\ntime.sleep(600)"
    async with child(plugged, python(program), memory_bytes=100 * MB) as one:
        assert await one.ended() == -signal.SIGKILL
        assert one.trouble.endswith(f"of memory, more than {100 * MB}, and were killed")
        assert one.trouble.startswith("it and what it has started had ")
        assert one.memory_bytes == 0


async def test_memory_is_known(plugged: Plugged) -> None:
    async with child(plugged, python(SLEEPS), memory_bytes=500 * MB) as one:
        found = await eventually(lambda: one.memory_bytes or None, "the first look")
        assert MB < found < 100 * MB


async def test_one_that_prints_without_end_waits_and_not_the_loop(
    plugged: Plugged, log: pytest.LogCaptureFixture
) -> None:
    program = "import os\nwhile True: os.write(1, b'line\\n' * 10000)"
    began = trio.current_time()
    async with child(plugged, python(program)) as one:
        await eventually(lambda: "left out" in log.text, "more lines than are logged")
        assert one.up
    lines = [message for message in log.messages if message == "one: line"]
    assert BURST < len(lines) <= BURST + RATE * (trio.current_time() - began) + 1
    assert one.lines_left_out > 0


async def test_the_clock_of_the_pauses_is_how_long_it_was_up(plugged: Plugged, pauses: list[float]) -> None:
    async with child(plugged, python("import time; time.sleep(0.3)"), restart=Restart.ALWAYS):
        await eventually(lambda: pauses or None, "the first end")
    assert 0.2 < pauses[0] < 60
