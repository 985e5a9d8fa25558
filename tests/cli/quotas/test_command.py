"""`leafcuttr quotas` against a real broker, ours and Kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]


def test_quotas_come_and_go(run: Run, topic: str) -> None:
    user = f"user-of-{topic}"
    done = run("quotas", "set", "--user", user, "producer_byte_rate=1048576", "request_percentage=12.5")
    assert (done.status, done.out) == (0, f"user {user}: 2 quotas set\n")
    done = run("quotas", "set", "--user", user, "--client", topic, "consumer_byte_rate=9e9")
    assert done.out == f"user {user}, client {topic}: 1 quota set\n"
    done = run("quotas", "set", "--user", user, "--client-defaults", "controller_mutation_rate=0.5")
    assert done.out == f"user {user}, client <default>: 1 quota set\n"
    rows = [line.split() for line in run("quotas", "list", "--user", user).out.splitlines()]
    assert rows == [
        ["USER", "CLIENT", "IP", "QUOTA", "VALUE"],
        [user, "producer_byte_rate", "1048576"],
        [user, "request_percentage", "12.5"],
        [user, "<default>", "controller_mutation_rate", "0.5"],
        [user, topic, "consumer_byte_rate", "9000000000"],
    ]
    assert run("quotas", "list", "--client", topic, "--json").json == [
        {"entity": {"user": user, "client-id": topic}, "quotas": {"consumer_byte_rate": 9e9}}
    ]
    done = run("quotas", "remove", "--user", user, "request_percentage")
    assert done.out == f"user {user}: 1 quota removed\n"
    for client in (("--client", topic), ("--client-defaults",)):
        assert run("quotas", "remove", "--user", user, *client).status == 0
    assert run("quotas", "list", "--json", "--user", user).json == [
        {"entity": {"user": user}, "quotas": {"producer_byte_rate": 1048576}}
    ]
    assert run("quotas", "remove", "--user", user).status == 0
    assert run("quotas", "list", "--user", user).out.splitlines()[1:] == []


def test_addresses_and_defaults(run: Run) -> None:
    assert run("quotas", "set", "--ip", "192.0.2.7", "connection_creation_rate=5").status == 0
    assert run("quotas", "set", "--ip-defaults", "connection_creation_rate=5000").status == 0
    found = run("quotas", "list", "--json").json
    for name in ("192.0.2.7", None):
        assert name in [each["entity"].get("ip", "") for each in found]
        assert run("quotas", "remove", *(("--ip", name) if name else ("--ip-defaults",))).status == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("remove", "--user", "nobody-of-it"), "user nobody-of-it: there is no quota\n"),
        (("remove", "--user", "nobody-of-it", "x"), "user nobody-of-it: there is no quota x\n"),
        (("set", "--user", "u", "x=1"), "Invalid configuration key x"),
        (("set", "--user", "u", "producer_byte_rate=0"), "must be greater than 0"),
    ],
)
def test_what_is_refused(run: Run, words: tuple[str, ...], why: str) -> None:
    done = run("quotas", *words)
    assert done.status == 1
    assert why in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("set",),
        ("set", "--user", "u"),
        ("set", "producer_byte_rate=1"),
        ("set", "--user", "u", "producer_byte_rate"),
        ("set", "--user", "u", "producer_byte_rate=much"),
        ("set", "--user", "u", "--user-defaults", "producer_byte_rate=1"),
        ("set", "--user", "u", "--ip", "10.0.0.1", "connection_creation_rate=1"),
        ("remove",),
    ],
)
def test_wrong_usage(run: Run, words: tuple[str, ...]) -> None:
    assert run("quotas", *words).status == 2
