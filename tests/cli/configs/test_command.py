"""`leafcuttr configs` against a real broker."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.waiting import until

Run = Callable[..., Any]


def shown(run: Run, *words: str) -> dict[str, tuple[str, str]]:
    """Setting -> (value, source) of one entity."""
    described = run("configs", "describe", *words, "--json")
    assert described.status == 0, described.err
    (about,) = described.json
    return {entry["name"]: (entry["value"], entry["source"]) for entry in about["config"]}


def alter(run: Run, *words: str) -> None:
    done = run("configs", "alter", *words)
    assert done.status == 0, done.err
    settle(run)


def settle(run: Run) -> None:
    """Wait until the changes so far are in effect: Kafka's controller answers before its broker has heard of them, and
    its broker hears of all in their order."""
    marker = f"settled-{uuid.uuid4().hex[:12]}"
    run("topics", "create", marker)
    until(lambda: run("topics", "describe", marker).status == 0, f"topic {marker}")
    assert run("topics", "delete", marker).status == 0


def test_settings_of_a_topic(run: Run, topic: str) -> None:
    run("topics", "create", topic)
    assert shown(run, "topic", topic) == {}
    done = run(
        "configs", "alter", "topic", topic, "--set", "retention.ms=86400000", "--set", "segment.bytes=1048576"
    )
    assert done.out == f"topic {topic}: 2 settings changed\n"
    settle(run)
    own = {"retention.ms": ("86400000", "topic"), "segment.bytes": ("1048576", "topic")}
    assert shown(run, "topics", topic) == own
    everything = shown(run, "topic", topic, "--all")
    assert own.items() <= everything.items()
    assert everything["cleanup.policy"] == ("delete", "built in")
    alter(run, "topic", topic, "--delete", "retention.ms", "--append", "cleanup.policy=compact")
    assert shown(run, "topic", topic) == {
        "segment.bytes": ("1048576", "topic"),
        "cleanup.policy": ("delete,compact", "topic"),
    }
    alter(run, "topic", topic, "--subtract", "cleanup.policy=delete")
    assert shown(run, "topic", topic)["cleanup.policy"] == ("compact", "topic")
    rows = [line.split() for line in run("configs", "describe", "topic", topic).out.splitlines()]
    assert rows == [
        ["TOPIC", "SETTING", "VALUE", "SOURCE"],
        [topic, "cleanup.policy", "compact", "topic"],
        [topic, "segment.bytes", "1048576", "topic"],
    ]


def test_all_topics_that_have_settings(run: Run, topic: str) -> None:
    run("topics", "create", topic, "-c", "flush.messages=5")
    run("topics", "create", f"{topic}-plain")
    listed = run("configs", "describe", "topic").out
    assert topic in [line.split()[0] for line in listed.splitlines()]
    assert f"{topic}-plain" not in listed


def test_all_or_nothing(run: Run, topic: str) -> None:
    run("topics", "create", topic)
    refused = run("configs", "alter", "topic", topic, "-s", "flush.messages=5", "-s", "retention.ms=soon")
    assert refused.status == 1
    assert refused.err.startswith(f"leafcuttr: topic {topic}: ")
    assert "(INVALID_CONFIG)" in refused.err
    tried = run("configs", "alter", "topic", topic, "-s", "flush.messages=5", "--dry-run", "--json")
    assert tried.json == [{"name": f"topic {topic}", "changed": False, "error": None}]
    assert shown(run, "topic", topic) == {}
    missing = run("configs", "alter", "topic", "no-such-topic", "-s", "flush.messages=5")
    assert "(UNKNOWN_TOPIC_OR_PARTITION)" in missing.err
    missing = run("configs", "describe", "topic", "no-such-topic")
    assert (missing.status, missing.out) == (1, "")
    assert missing.err.startswith("leafcuttr: no-such-topic: ")


def test_settings_from_a_file(run: Run, topic: str, tmp_path: Path) -> None:
    run("topics", "create", topic)
    file = tmp_path / "topic.properties"
    file.write_text("# ours\nflush.messages = 7\n\nretention.ms=1000000\n")
    alter(run, "topic", topic, "--file", str(file), "--set", "retention.ms=2000000")
    assert shown(run, "topic", topic) == {
        "flush.messages": ("7", "topic"),
        "retention.ms": ("2000000", "topic"),
    }
    file.write_text("flush.messages\n")
    assert run("configs", "alter", "topic", topic, "--file", str(file)).status == 2


def test_one_broker_and_all_of_them(run: Run) -> None:
    setting = "log.cleaner.backoff.ms"
    try:
        alter(run, "broker", "--default", "--set", f"{setting}=20000")
        assert shown(run, "broker", "--default")[setting] == ("20000", "broker default")
        assert shown(run, "broker", "1")[setting] == ("20000", "broker default")
        alter(run, "broker", "1", "--set", f"{setting}=10000")
        assert shown(run, "broker", "1")[setting] == ("10000", "broker")
        assert f"1       {setting}" in run("configs", "describe", "broker").out
    finally:
        alter(run, "broker", "1", "--delete", setting)
        alter(run, "broker", "--default", "--delete", setting)
    assert setting not in shown(run, "broker", "1")
    assert shown(run, "broker", "1", "--all")[setting] == ("15000", "built in")
    for words in (("describe", "broker", "7"), ("alter", "broker", "7", "-s", f"{setting}=1")):
        refused = run("configs", *words)
        assert refused.status == 1
        assert refused.err.endswith("there is no broker 7; there are 1\n")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("log.retention.hous", "is not a known setting of brokers; did you mean log.retention.hours?"),
        ("retention.ms", "is not a known setting of brokers, but of topics; the broker's default for it is "),
        ("log.retention.ms", ""),
        ("listener.name.plaintext.max.connections", ""),
    ],
)
def test_a_mistyped_setting_of_a_broker_is_not_passed_over(run: Run, name: str, said: str) -> None:
    done = run("configs", "alter", "broker", "1", "--set", f"{name}=86400000", "--dry-run")
    assert (done.status, done.out) == (0, "broker 1: 1 setting would be changed\n")
    assert done.err.startswith(f"leafcuttr: {name} {said}") if said else done.err == ""


def test_loggers_of_a_broker(run: Run) -> None:
    loggers = shown(run, "broker-logger", "1")
    assert len(loggers) > 1
    assert {source for _, source in loggers.values()} == {"broker logger"}


def test_groups_and_quotas(run: Run, topic: str, broker_kind: str) -> None:
    group = ("configs", "alter", "group", topic, "-s", "consumer.session.timeout.ms=50000")
    client = ("configs", "alter", "client", topic, "-s", "request_percentage=12.5")
    if broker_kind == "leafcuttr":  # which has no such groups yet: then it has to say so
        assert "KIP-848" in run(*group).err
    else:
        assert run(*group).status == 0
        assert shown(run, "group", topic) == {"consumer.session.timeout.ms": ("50000", "group")}
        assert topic in run("configs", "describe", "group").out
    assert run(*client).status == 0
    user = f"user-of-{topic}"
    alter(run, "user", user, "--client", topic, "-s", "consumer_byte_rate=7")
    alter(run, "client", "--default", "-s", "producer_byte_rate=9e9")
    found = run("configs", "describe", "client", "--json").json
    alter(run, "client", "--default", "-d", "producer_byte_rate")
    assert {"type": "client", "name": None, "config": [{"name": "producer_byte_rate", "value": 9e9}]} in found
    own = {"type": "client", "name": topic, "config": [{"name": "request_percentage", "value": 12.5}]}
    with_user = {"user": user, "config": [{"name": "consumer_byte_rate", "value": 7}]}
    assert run("configs", "describe", "client", topic, "--json").json == [own, own | with_user]
    rows = [line.split() for line in run("configs", "describe", "user", user).out.splitlines()[1:]]
    assert rows == [[f"{user},", "client", topic, "consumer_byte_rate", "7"]]
    assert run("configs", "describe", "client", "--default", "--json").json == []
    wrong = run("configs", "alter", "client", topic, "-s", "producer_byte_rate=much")
    assert "producer_byte_rate=much: a quota is a number" in wrong.err


@pytest.mark.parametrize(
    "words",
    [
        ("describe",),
        ("describe", "partition"),
        ("describe", "topic", "--default"),
        ("describe", "broker", "1", "--default"),
        ("describe", "client", "-X", "client.idd=x"),
        ("alter", "topic", "-s", "a=b"),
        ("alter", "topic", "t"),
        ("alter", "topic", "t", "-s", "a"),
        ("alter", "topic", "t", "-s", "a=b", "-d", "a"),
        ("alter", "topic", "t", "--default", "-s", "a=b"),
        ("alter", "topic", "t", "--client", "c", "-s", "a=b"),
        ("alter", "client", "c", "--append", "a=1"),
    ],
)
def test_wrong_usage(run: Run, words: tuple[str, ...]) -> None:
    assert run("configs", *words).status == 2
