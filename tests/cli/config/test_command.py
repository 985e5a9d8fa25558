"""`leafcuttr config`: what it prints, what it finds, how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from leafcuttr.cli.config.command import command
from leafcuttr.config.catalog import BROKER, GROUP, KAFKA_DEFAULTS, THEMES, TOPIC
from support import librdkafka

WRONG = """\
log.retention.hours=abc
log.retension.ms=5
retention.ms=5
num.io.threads=16
num.partitions=3
num.partitions=0
group.min.session.timeout.ms=99999999
ssl.key.password=hunter2
"""


def config(*words: str, environ: dict[str, str] | None = None) -> Result:
    """Run it in this process; only these KAFKA_ variables are set."""
    result = CliRunner().invoke(command, words, env=environ, prog_name="config")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("KAFKA_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "server.properties"
        path.write_text(text)
        return str(path)

    return write


# describe


ALL_OF_BROKER = [setting.name for _, table in THEMES for setting in table]


@pytest.mark.parametrize(
    ("words", "names"), [((), ALL_OF_BROKER), (("--topic",), list(TOPIC)), (("--group",), list(GROUP))]
)
def test_every_setting_is_described(words: tuple[str, ...], names: list[str]) -> None:
    rows = json.loads(config("describe", *words, "--json").stdout)
    assert [row["setting"] for row in rows if row["plugin"] is None] == names
    ours, *_ = config("describe", *words).stdout.split("\n\nplugin ")
    text = ours.splitlines()
    assert text[0].split() == ["SETTING", "TYPE", "DEFAULT", "VALUE", "SOURCE", "CHANGES", "EFFECT"]
    # The name of a family has blanks in its brackets.
    assert [name for name, line in zip(names, text[1:], strict=True) if not line.startswith(f"{name} ")] == []


def test_values_come_with_their_sources(file: Any) -> None:
    path = file("num.partitions=7\nlog.retention.hours=3\n")
    words = ("-c", path, "-o", "log.retention.hours=4", "--json")
    rows = json.loads(
        config("describe", "*", *words, environ={"KAFKA_MESSAGE_MAX_BYTES": "9"}).stdout,
    )
    found = {row["setting"]: (row["value"], row["source"]) for row in rows}
    assert found["num.partitions"] == ("7", "server.properties:1")
    assert found["message.max.bytes"] == ("9", "KAFKA_MESSAGE_MAX_BYTES")
    assert found["log.retention.hours"] == ("4", "-o")
    assert found["log.retention.ms"] == ("14400000", "log.retention.hours (-o)")
    assert found["log.dir"] == ("./leafcuttr-data", "default")


def test_a_topic_has_its_value_from_the_broker() -> None:
    (row,) = json.loads(
        config("describe", "--topic", "retention.ms", "-o", "log.retention.hours=3", "--json").stdout
    )
    assert (row["value"], row["source"]) == ("10800000", "log.retention.hours (-o)")
    (row,) = json.loads(config("describe", "--topic", "retention.ms", "--json").stdout)
    assert (row["value"], row["source"]) == ("604800000", "default")


def test_one_setting_is_told_in_full() -> None:
    text = config("describe", "num.io.threads", "log.dir").stdout
    assert "accepted without effect: one event loop serves all requests" in text
    assert "Kafka's default:       /tmp/kafka-logs" in text
    assert BROKER["log.dir"].help in text


def test_some_are_chosen() -> None:
    names = [row["setting"] for row in json.loads(config("describe", "log.cleaner.*", "--json").stdout)]
    assert names == [name for name in BROKER if name.startswith("log.cleaner.")]
    for flag, key, value in (("--dynamic", "dynamic", True), ("--honoured", "effect", "honoured")):
        rows = json.loads(config("describe", flag, "--json").stdout)
        assert 0 < len(rows) < len(BROKER)
        assert {row[key] for row in rows} == {value}


def test_a_name_that_is_none() -> None:
    result = config("describe", "log.retension.ms")
    assert result.exit_code == 2
    assert "did you mean log.retention.ms?" in result.stderr


def test_a_secret_is_not_shown(file: Any) -> None:
    path = file(WRONG)
    for words in (("describe", "-c", path), ("describe", "ssl.key.password", "-c", path), ("diff", path)):
        for more in ((), ("--json",)):
            result = config(*words, *more)
            assert "hunter2" not in result.output
    assert "hunter2" not in config("check", path).output + config("check", path, "--json").output


# check


def test_all_findings_at_once(file: Any) -> None:
    result = config("check", file(WRONG))
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[:7] == [
        "error:   log.retention.hours=abc (server.properties:1): allowed is a whole number",
        "error:   num.partitions=0 (server.properties:6): allowed is a whole number, at least 1",
        "error:   group.min.session.timeout.ms=99999999 (server.properties:7): "
        "allowed is at most the value of group.max.session.timeout.ms, 1800000",
        "warning: num.partitions (server.properties:5) is given again at server.properties:6, and that one counts",
        "warning: log.retension.ms (server.properties:2) is not a known setting and has no effect; "
        "did you mean log.retention.ms?",
        "warning: retention.ms (server.properties:3) is a setting of topics and has no effect here; "
        "the broker's default for it is log.retention.ms",
        "note:    num.io.threads=16 (server.properties:4) has no effect here: one event loop serves all requests",
    ]
    assert lines[-1] == "7 settings given; 3 errors, 3 warnings, 1 note"


def test_findings_for_programs(file: Any) -> None:
    result = config("check", file(WRONG), "--json", environ={"KAFKA_LOG_DIRS": "/a,/b"})
    found = json.loads(result.stdout)
    assert (found["errors"], found["warnings"], found["notes"], result.exit_code) == (4, 3, 1, 1)
    assert found["findings"][0] == {
        "level": "error",
        "setting": "log.retention.hours",
        "value": "abc",
        "source": "server.properties:1",
        "message": "log.retention.hours=abc (server.properties:1): allowed is a whole number",
    }
    assert {finding["source"] for finding in found["findings"]} >= {"KAFKA_LOG_DIRS"}


@pytest.mark.parametrize(
    ("text", "words", "status"),
    [
        ("num.partitions=3\n", (), 0),
        ("num.partitions=3\n", ("--strict",), 0),
        ("num.io.threads=3\n", ("--strict",), 0),
        ("num.partitons=3\n", (), 0),
        ("num.partitons=3\n", ("--strict",), 1),
        ("num.partitions=3\n", ("-o", "num.partitions=x"), 1),
        ("num.partitions=x\n", ("-o", "num.partitions=3"), 0),
        ("num.partitions=3\n", ("-o", "num.partitions"), 2),
    ],
)
def test_exit_status(file: Any, text: str, words: tuple[str, ...], status: int) -> None:
    assert config("check", file(text), *words).exit_code == status


def test_a_file_that_is_not_there() -> None:
    result = config("check", "/nowhere/server.properties")
    assert result.exit_code == 2
    assert "/nowhere/server.properties: No such file or directory" in result.stderr


def test_nothing_to_say(file: Any) -> None:
    assert config("check", file("num.partitions=3\n")).stdout == "1 setting given; nothing to say\n"


# diff


def test_where_our_defaults_are_not_kafkas() -> None:
    rows = json.loads(config("diff", "--json").stdout)
    assert {row["setting"]: row["kafka_default"] for row in rows} == KAFKA_DEFAULTS


def test_a_file_against_both_defaults(file: Any) -> None:
    path = file(
        "num.partitions=3\nmessage.max.bytes=1048588\nlog.dir=/tmp/kafka-logs\nlc.log.sync.always=true\n"
    )
    rows = {row["setting"]: row for row in json.loads(config("diff", path, "--json").stdout)}
    assert set(rows) == {*KAFKA_DEFAULTS, "num.partitions", "lc.log.sync.always"}
    assert rows["num.partitions"] == {
        "setting": "num.partitions",
        "value": "3",
        "source": "server.properties:1",
        "leafcuttr_default": "1",
        "kafka_default": "1",
    }
    assert (rows["log.dir"]["value"], rows["log.dir"]["kafka_default"]) == (
        "/tmp/kafka-logs",
        "/tmp/kafka-logs",
    )
    assert rows["lc.log.sync.always"]["kafka_default"] is None
    assert "num.partitions" in config("diff", path).stdout


@pytest.mark.long
def test_a_running_broker(own_address: str, run_process: Any, topic: str) -> None:
    librdkafka.create(own_address, topic, retention_ms="1000")
    rows = {row["setting"]: row for row in run_process("config", "diff", "-b", own_address, "--json").json}
    assert (rows["num.partitions"]["value"], rows["num.partitions"]["source"]) == ("2", "given at start")
    assert "message.max.bytes" not in rows
    librdkafka.alter(own_address, "broker", "1", {"message.max.bytes": "2000000"})
    try:
        rows = {
            row["setting"]: row for row in run_process("config", "diff", "-b", own_address, "--json").json
        }
        changed = rows["message.max.bytes"]
        assert (changed["value"], changed["source"]) == ("2000000", "changed for this broker")
        rows = {
            row["setting"]: row
            for row in run_process("config", "diff", "-b", own_address, "--topic", topic, "--json").json
        }
        assert (rows["retention.ms"]["value"], rows["retention.ms"]["source"]) == ("1000", "topic")
        assert rows["max.message.bytes"]["source"] == "changed for this broker"
    finally:
        librdkafka.alter(own_address, "broker", "1", {"message.max.bytes": None})
    shown = run_process("config", "diff", "-b", own_address).out
    assert shown.splitlines()[0].startswith("SETTING")


def test_a_topic_without_a_broker(run_process: Any) -> None:
    assert run_process("config", "diff", "--topic", "t").status == 2
