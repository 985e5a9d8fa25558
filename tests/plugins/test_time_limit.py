"""Calls that may never return: a thread of their own, a line with the place, and what they return later is ignored."""

from __future__ import annotations

import contextvars
import importlib
import inspect
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from leafcuttr.errors import PluginError
from leafcuttr.plugins import importing, time_limit
from leafcuttr.plugins.finding import Choice, find_plugins
from leafcuttr.plugins.loaded import PluginState
from leafcuttr.plugins.origin import OURS
from leafcuttr.plugins.time_limit import TakesTooLong, in_time, in_time_on_loop
from support.broker_process import running_broker
from support.plugin_folders import SOUND, install
from support.waiting import until

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("of the test")
SHORT_S = 0.05
ENDLESS_S = 3600.0
HANGS = "import threading; threading.Event().wait(3600)"


@pytest.fixture
def end() -> Iterator[threading.Event]:
    """Ends what hangs, at the latest when the test is over."""
    event = threading.Event()
    yield event
    event.set()


def hang(end: threading.Event) -> str:
    end.wait()
    return "late"


def on_loop(call: Callable[[], str], limit_s: float, package: str) -> str:
    return trio.run(in_time_on_loop, call, limit_s, package)


BOTH = pytest.mark.parametrize("call_in_time", [in_time, on_loop])
Limited = Callable[[Callable[[], object], float, str], object]


@BOTH
def test_what_it_returns_and_raises_comes_out(call_in_time: Limited) -> None:
    def fail() -> None:
        raise SystemExit("no")

    assert call_in_time(threading.get_ident, ENDLESS_S, "tests") != threading.get_ident()
    with pytest.raises(SystemExit, match="no"):
        call_in_time(fail, ENDLESS_S, "tests")


@BOTH
def test_it_sees_the_context_of_the_caller(call_in_time: Limited) -> None:
    VARIABLE.set("seen")
    assert call_in_time(VARIABLE.get, ENDLESS_S, "tests") == "seen"


@BOTH
def test_the_line_says_where_it_is_in_the_code_of_the_plugin_and_below(
    call_in_time: Limited, end: threading.Event
) -> None:
    line = inspect.getsourcelines(hang)[1] + 1
    with pytest.raises(TakesTooLong) as raised:
        call_in_time(partial(hang, end), SHORT_S, __file__)
    of_wait = inspect.getsourcefile(threading)
    assert str(raised.value).startswith(
        f"has taken longer than 0.05 s: it is at {__file__}, line {line}, in {of_wait}, line "
    )


def test_the_line_of_a_call_that_is_in_other_code_only(end: threading.Event) -> None:
    with pytest.raises(TakesTooLong) as raised:
        in_time(end.wait, SHORT_S, "acme")
    assert f"it is at {inspect.getsourcefile(threading)}, line " in str(raised.value)
    assert ", in " not in str(raised.value)


def test_what_is_returned_later_is_ignored_and_its_thread_is_used_again(end: threading.Event) -> None:
    threads: list[int] = []
    with pytest.raises(TakesTooLong):
        in_time(lambda: (threads.append(threading.get_ident()), hang(end)), SHORT_S, "tests")
    other = in_time(threading.get_ident, ENDLESS_S, "tests")
    assert other != threads[0]
    end.set()
    until(lambda: threads[0] in spare(), "the thread to be spare")
    assert in_time(lambda: "another", ENDLESS_S, "tests") == "another"


def spare() -> list[int | None]:
    return [each.ident for each in time_limit._Thread._spare]


def test_a_spare_thread_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "_IDLE_S", 0.01)
    ident = in_time(threading.get_ident, ENDLESS_S, "tests")
    until(lambda: all(ident != each.ident for each in threading.enumerate()), "the thread to end", seconds=60)
    assert ident not in spare()


async def test_the_loop_goes_on_meanwhile_and_a_cancelled_call_is_left(end: threading.Event) -> None:
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(in_time_on_loop, partial(hang, end), ENDLESS_S, "tests")
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()


def test_a_call_that_ends_after_the_loop_harms_nobody(
    end: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    threads: list[int] = []
    with pytest.raises(TakesTooLong):
        on_loop(lambda: (threads.append(threading.get_ident()), hang(end))[1], SHORT_S, "tests")
    end.set()
    until(lambda: threads[0] in spare(), "the thread to be spare")
    assert raised == []


# Plugins


def test_an_import_that_hangs(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "LIMIT_S", SHORT_S)
    # A name of its own: this process can import no module of that name any more.
    file = install(site, "stuck", f"\n{HANGS}\n{SOUND.format(name='stuck')}")
    one = next(one for one in find_plugins(Choice()).all if one.name == "stuck")
    assert one.state is PluginState.FAILED
    assert one.why.startswith(f"its import has taken longer than 0.05 s: it is at {file}, line 2, in ")
    # The next import waits for the first one, within the import system.
    one = next(one for one in find_plugins(Choice()).all if one.name == "stuck")
    assert one.why == f"its import has taken longer than 0.05 s: it is {at_the_call_of_import_module()}"


def at_the_call_of_import_module() -> str:
    lines, first = inspect.getsourcelines(importlib.import_module)
    return f"at {inspect.getsourcefile(importlib)}, line {first + len(lines) - 1}"


HANGING_HOOK = """
from leafcuttr_sdk import *

PLUGIN = Plugin(name="acme", api_version=1, summary="Hangs.", hook_limit_s={limit_s}{more})

def leafcuttr_register_{hook}:
    {hangs}
    yield
"""


def hanging(hook: str, limit_s: str = "0.05", hangs: str = HANGS, more: str = "") -> str:
    return HANGING_HOOK.format(hook=hook, limit_s=limit_s, hangs=hangs, more=more)


def test_a_hook_that_hangs_is_named(site: Path) -> None:
    file = install(site, "acme", hanging("settings()"))
    one = next(one for one in find_plugins(Choice()).all if one.name == "acme")
    assert one.why.startswith(
        f"leafcuttr_register_settings has taken longer than 0.05 s: it is at {file}, line 7, in "
    )


@pytest.mark.parametrize("distribution", ["leafcuttr-acme", OURS])
def test_only_a_bundled_plugin_may_take_longer(
    site: Path, monkeypatch: pytest.MonkeyPatch, distribution: str
) -> None:
    monkeypatch.setattr("leafcuttr.plugins.finding.LIMIT_S", SHORT_S)
    # It waits until it may no longer; a bundled one is let do so.
    hangs = "import threading, time; end = time.monotonic() + 1\n    while time.monotonic() < end: time.sleep(0.01)"
    source = hanging("settings()", "3600", hangs, ", enabled_by='lc.acme.enable'").replace(
        "yield", "yield Setting('lc.acme.enable', Type.BOOLEAN, False, 'Whether it is on.')"
    )
    install(site, "acme", source, distribution=distribution)
    one = next(one for one in find_plugins(Choice()).all if one.name == "acme")
    assert (one.state is PluginState.FAILED) == (distribution != OURS), one.why


@pytest.mark.parametrize("limit_s", ["'10'", "0", "float('inf')", "float('nan')", "True"])
def test_a_limit_has_to_be_one(site: Path, limit_s: str) -> None:
    install(site, "acme", hanging("settings()", limit_s))
    one = next(one for one in find_plugins(Choice()).all if one.name == "acme")
    assert "it has to be a number of seconds" in one.why


def test_a_hook_that_signals_interrupt_hangs(end: threading.Event) -> None:
    """What a handler of a signal raises ends the wait, also where the signal itself does not interrupt it.

    The thread takes the signal, as the main thread does right before its wait begins: no call of the system returns.
    """
    import signal

    class Stopped(BaseException):
        pass

    def stop(*_: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGUSR1, stop)
    try:

        def call() -> None:
            signal.raise_signal(signal.SIGUSR1)
            end.wait()

        with pytest.raises(Stopped):
            in_time(call, ENDLESS_S, "tests")
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "hook", ["services()", "health_checks(broker)", "admin_routes(broker)", "metrics(broker)"]
)
def test_serve_starts_without_a_plugin_that_hangs(tmp_path: Path, hook: str) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "acme.py").write_text(hanging(hook))
    with running_broker(tmp_path / "broker", {"lc.plugins.path": str(plugins)}) as broker:
        state = json.loads((broker.folder / "ready.json").read_text())
    assert state["listeners"]
    (line,) = [line for line in broker.log.splitlines() if "is ready on" not in line]
    name = hook.partition("(")[0]
    assert (
        f"leafcuttr_register_{name} has taken longer than 0.05 s: it is at {plugins / 'acme.py'}, line 7"
        in line
    )


def test_a_plugin_error_is_its_own(end: threading.Event) -> None:
    def refuse() -> None:
        raise PluginError("own words")

    with pytest.raises(PluginError, match="own words"):
        in_time(refuse, ENDLESS_S, "tests")
