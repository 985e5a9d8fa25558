"""`leafcuttr relay` as a person runs it: its file, its options, what it prints, how it ends."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import leafcuttr_forward
from forward.clusters import create, produce, values
from leafcuttr_sdk.cli import CliCommand
from leafcuttr_sdk.testing import check_command, run_command
from leafcuttr_sdk.testing.commands import CommandResult
from support.broker_process import clean_environ
from support.live_broker import LiveBroker
from support.waiting import until

_NUMBERS = itertools.count(1)
RELAY = next(each for each in leafcuttr_forward.leafcuttr_register_cli_commands() if each.name == "relay")
Relay = Callable[..., CommandResult]


def text_of(edge: LiveBroker, hub: LiveBroker, topics: str, more: str = "") -> str:
    return f"""
[app]
metrics_server_addr = "127.0.0.1:0"
[topics]
{topics}
[source_pool]
healthcheck_interval = "200ms"
request_timeout = "5s"
[[sources]]
name = "edge"
servers = ["{edge.address}"]
[target]
name = "hub"
servers = ["{hub.address}"]
{more}
"""


@pytest.fixture
def topics(edge: LiveBroker) -> tuple[str, str]:
    """A topic with ten records, and a name at the target."""
    number = next(_NUMBERS)
    source, target = f"commanded-{number}", f"copy-{number}"
    create(edge.address, source)
    produce(edge.address, source, [str(each) for each in range(10)])
    return source, target


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def relay(folder: Path) -> Iterator[Relay]:
    """Runs it in this process, with a name of its own."""
    number = next(_NUMBERS)

    def run(*words: str) -> CommandResult:
        return run_command(RELAY, "--name", f"commanded-{number}", *words, plugin=leafcuttr_forward)

    yield run


def test_it_keeps_the_contract_of_commands() -> None:
    check_command(RELAY, plugin=leafcuttr_forward, calls=[("--config", "/nowhere")])


def test_the_file_is_config_toml(
    folder: Path, relay: Relay, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    missing = relay("--stop-at-end")
    assert (missing.status, missing.out) == (1, "")
    assert missing.err == "leafcuttr: config.toml cannot be read: No such file or directory\n"
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"'))
    done = relay("--stop-at-end")
    assert done.status == 0, done.err
    assert "10 records read, 10 written; lag 0" in done.out
    assert values(hub.address, topics[1]) == [str(each) for each in range(10)]


def test_files_are_merged_and_topics_of_the_line_are_added(
    folder: Path, relay: Relay, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    (folder / "a.toml").write_text(text_of(edge, hub, 'none = "none"'))
    (folder / "b.toml").write_text('[app]\nlog_level = "error"\n')
    words = ("--topic", f"{topics[0]}:{topics[1]}:2", "--dry-run", "--json")
    for files in (("--config", "a.toml", "--config", "b.toml"), ("--config", "a.toml,b.toml")):
        done = relay(*files, *words)
        assert done.err == ""
        found = json.loads(done.out)
        assert found["partitions"] == [
            {
                "topic": topics[0],
                "partition": 0,
                "target_topic": topics[1],
                "target_partition": 2,
                "start": 0,
                "end": 10,
                "why": "earliest",
                "records": 10,
            }
        ]
        assert found["notes"] == [
            "the source has no topic none",
            f"the target has no topic {topics[1]}: it would be created",
        ]


def test_a_dry_run_copies_and_creates_nothing(
    folder: Path, relay: Relay, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"'))
    before = hub.call(lambda: sorted(hub.broker.logs.logs))
    done = relay("--dry-run")
    assert done.status == 0
    assert done.out.splitlines()[1].split() == [topics[0], "0", topics[1], "0", "0", "10", "10", "earliest"]
    assert "10 records to copy from edge\n" in done.out
    assert hub.call(lambda: sorted(hub.broker.logs.logs)) == before
    relay("--stop-at-end")
    assert relay("--dry-run").out.splitlines()[1].split()[4:] == ["10", "10", "0", "position"]


def test_a_dry_run_says_why_it_begins_there(
    folder: Path, relay: Relay, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"'))
    latest = relay("--dry-run", "--start", "latest")
    assert latest.out.splitlines()[1].split()[4:] == ["10", "10", "0", "latest"]
    # As kaf-relay leaves it: each record at its own offset.
    create(hub.address, topics[1])
    produce(hub.address, topics[1], [str(each) for each in range(4)])
    assert relay("--dry-run").out.splitlines()[1].split()[4:] == [
        "4",
        "10",
        "6",
        "end",
        "of",
        "the",
        "target",
    ]
    earliest = relay("--dry-run", "--start", "earliest")
    assert earliest.out.splitlines()[1].split()[4:] == ["0", "10", "10", "earliest"]


def test_every_fault_is_a_line(folder: Path, relay: Relay) -> None:
    (folder / "config.toml").write_text('[topics]\na = "b:c"\n[app]\nlog_level = "loud"\n')
    done = relay()
    assert (done.status, done.out) == (1, "")
    assert done.err.splitlines() == [
        'leafcuttr: config.toml: app.log_level = "loud": allowed is debug, info, warn, error',
        "leafcuttr: config.toml: topics.a = \"b:c\": 'c' is no partition; allowed is TARGET or TARGET:PARTITION",
        "leafcuttr: there is no [[sources]]",
        "leafcuttr: there is no [target]",
    ]


def test_unknown_keys_are_warned_of(
    folder: Path, relay: Relay, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    more = 'backof_min = "1s"\n'
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"', more))
    done = relay("--dry-run")
    assert done.status == 0
    assert "WARNING config.toml: unknown key target.backof_min; the nearest is backoff_min\n" in done.err


def test_no_end_with_failover(
    folder: Path, relay: Relay, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"'))
    done = relay("--mode", "failover", "--stop-at-end")
    assert done.status == 1
    assert done.err.startswith("leafcuttr: --stop-at-end cannot be used with --mode failover")


def test_another_mode_is_wrong_usage(relay: Relay) -> None:
    assert relay("--mode", "both").status == 2


def test_a_dead_letter_topic_that_there_cannot_be_is_wrong_usage(relay: Relay) -> None:
    done = relay("--dead-letter-topic", "a b")
    assert done.status == 2
    assert "'a b' is no name of a topic" in done.err


def test_a_summary_for_programs(
    folder: Path, relay: Relay, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"'))
    done = relay("--stop-at-end", "--json", "--at-least-once")
    found = json.loads(done.out)
    assert (found["status"], found["why"], found["state"]) == (0, None, "ended")
    assert (found["guarantee"], found["read"], found["written"]) == ("at least once", 10, 10)


def test_a_client_setting_that_cannot_be_used_is_a_line(
    folder: Path, relay: Relay, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    more = 'enable_tls = true\nca_cert_path = "none.pem"\n'
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"', more))
    done = relay("--dry-run")
    assert done.status == 1
    assert "none.pem" in done.err.splitlines()[-1]
    assert "Traceback" not in done.err


# Filters


@pytest.mark.parametrize("name", ["test.bin", "f.so", "testfilter.filter", "elf"])
def test_a_go_plugin_is_refused(
    name: str, folder: Path, relay: Relay, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    (folder / "elf").write_bytes(b"\x7fELF and more")
    text = text_of(edge, hub, f'{topics[0]} = "{topics[1]}"') + f'[filters.test]\npath = "{name}"\n'
    (folder / "config.toml").write_text(text)
    assert relay("--dry-run").status == 0  # it is not enabled
    done = relay("--dry-run", "--filter", "test")
    assert (done.status, done.out) == (1, "")
    assert f"the filter test ({name}) is a Go plugin, which cannot be loaded here" in done.err


SEVENS = """
def is_allowed(message, config):
    return int(message) % config["by"] == 0
"""


def test_a_python_file_is_a_filter_and_gets_its_config(
    folder: Path, relay: Relay, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    (folder / "by it's number.py").write_text(SEVENS)
    more = "[filters.seven]\nenabled = true\npath = \"by it's number.py\"\nconfig = '''\n{\"by\":\n 3}\n'''\n"
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"', more))
    done = relay("--stop-at-end")
    assert done.status == 0, done.err
    assert "10 records read, 4 written, 6 dropped by filters; lag 0" in done.out
    assert values(hub.address, topics[1]) == ["0", "3", "6", "9"]


def test_filters_of_the_line_come_behind_those_of_the_file(
    folder: Path,
    relay: Relay,
    edge: LiveBroker,
    hub: LiveBroker,
    topics: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / "even.py").write_text("def filter(value):\n    return int(value) % 2 == 0\n")
    (folder / "big.py").write_text("def big(value):\n    return int(value) > 5\n")
    monkeypatch.setenv("KAFKA_LC_RECORD_FILTER_SOME", "python path=big.py:big")
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"'))
    done = relay("--stop-at-end", "--filter", "./even.py", "--filter", "some")
    assert done.status == 0, done.err
    assert values(hub.address, topics[1]) == ["6", "8"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("on_error", "status", "copies", "letters"),
    [
        ("drop", 0, ["1", "3"], []),
        ("dead-letter", 0, ["1", "3"], ["many"]),
        ("fail", 0, ["1", "3"], ["many"]),
        ("fail", 1, [], None),
    ],
)
def test_what_a_filter_cannot_handle(
    on_error: str,
    status: int,
    copies: list[str],
    letters: list[str] | None,
    folder: Path,
    relay: Relay,
    edge: LiveBroker,
    hub: LiveBroker,
    topics: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is dropped, set aside, or poison: that goes to the relay's dead letters too, or ends it."""
    source, target = f"{topics[0]}-json", topics[1]
    create(edge.address, source)
    produce(edge.address, source, [f'{{"n":"{n}"}}' for n in ("1", "many", "3")])
    monkeypatch.setenv("KAFKA_LC_RECORD_FILTER_NUMBERS", f"cast spec=n:int64 on.error={on_error}")
    (folder / "config.toml").write_text(text_of(edge, hub, f'{source} = "{target}"'))
    words = [] if letters is None else ["--dead-letter-topic", f"{target}-dead"]
    done = relay("--stop-at-end", "--filter", "numbers", *words)
    assert done.status == status, done.err
    if letters is None:
        assert f"{source}-0, offset 1: " in done.err.splitlines()[-1]
        return
    assert values(hub.address, target) == [f'{{"n":{n}}}' for n in copies]
    if letters:
        assert values(hub.address, f"{target}-dead") == [f'{{"n":"{n}"}}' for n in letters]


def test_a_filter_routes(
    folder: Path,
    relay: Relay,
    edge: LiveBroker,
    hub: LiveBroker,
    topics: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(
        "KAFKA_LC_RECORD_FILTER_AWAY",
        f"route regex=.* replacement={topics[1]}-away when='value >= 7'",
    )
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"'))
    done = relay("--stop-at-end", "--filter", "away")
    assert done.status == 0, done.err
    assert values(hub.address, topics[1]) == [str(each) for each in range(7)]
    assert values(hub.address, f"{topics[1]}-away") == ["7", "8", "9"]


@pytest.mark.parametrize(
    ("path", "line"),
    [("none.py", "none.py"), ("nothing", "nothing"), ("no_module_of_this:f", "no_module_of_this")],
)
def test_a_filter_that_is_not_there_is_a_line(
    path: str,
    line: str,
    folder: Path,
    relay: Relay,
    edge: LiveBroker,
    hub: LiveBroker,
    topics: tuple[str, str],
) -> None:
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"'))
    done = relay("--stop-at-end", "--filter", path)
    assert done.status in (1, 2)
    assert line in done.err.splitlines()[-1]
    assert "Traceback" not in done.err


# Signals and crashes


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(
    how: signal.Signals, folder: Path, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"'))
    words = [sys.executable, "-m", "leafcuttr", "relay", "--name", f"signals-{how.name}", "--json"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environ(), text=True
    ) as process:
        until(lambda: has(hub, topics[1], 10), "the records are copied")
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert f"{how.name}: the flow ends" in err
    assert "Traceback" not in err
    assert json.loads(out)["why"] is None
    done = subprocess.run([*words, "--stop-at-end"], env=clean_environ(), check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert values(hub.address, topics[1]) == [str(each) for each in range(10)]


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.long)])
def test_killed_at_any_moment_it_doubles_and_loses_nothing(
    kills: int, folder: Path, edge: LiveBroker, hub: LiveBroker, topics: tuple[str, str]
) -> None:
    (folder / "config.toml").write_text(text_of(edge, hub, f'{topics[0]} = "{topics[1]}"'))
    words = [sys.executable, "-m", "leafcuttr", "relay", "--name", f"killed-{kills}"]
    total = 10
    for turn in range(kills):
        with subprocess.Popen(words, stderr=subprocess.DEVNULL, env=clean_environ()) as process:
            produce(edge.address, topics[0], [str(each) for each in range(total, total + 3000)])
            total += 3000
            until(partial(has, hub, topics[1], 1000 + turn * 3000), "some are copied")
            os.kill(process.pid, signal.SIGKILL)
    done = subprocess.run(
        [*words, "--stop-at-end"], env=clean_environ(), check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert values(hub.address, topics[1]) == [str(each) for each in range(total)]


def has(hub: LiveBroker, topic: str, count: int) -> bool:
    """Whether the log of the topic is that long."""
    return (
        hub.call(
            lambda: sum(
                log.log_end_offset for name, log in hub.broker.logs.logs.items() if name.topic == topic
            )
        )
        >= count
    )


def test_there_are_three_commands() -> None:
    found = [
        each for each in leafcuttr_forward.leafcuttr_register_cli_commands() if isinstance(each, CliCommand)
    ]
    assert [each.name for each in found] == ["relay", "mirror", "flows"]
