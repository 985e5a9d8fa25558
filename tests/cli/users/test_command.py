"""`leafcuttr users` against a real broker, and on a data directory that none uses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.broker_process import running_broker
from support.waiting import free_port

Run = Callable[..., Any]


def names(run: Run, *where: str) -> list[str]:
    return [each["user"] for each in run("users", "list", "--json", *where).json]


def test_users_come_and_go(run: Run, topic: str) -> None:
    done = run("users", "create", topic, stdin=b"secret\n")
    assert (done.status, done.out) == (0, f"created {topic}\n")
    (about,) = [each for each in run("users", "list", "--json").json if each["user"] == topic]
    assert about["mechanisms"] == {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 8192}
    assert f"{topic}  SCRAM-SHA-256  8192" in run("users", "list").out
    again = run("users", "create", topic, stdin=b"other\n")
    assert again.status == 1
    assert f"there is a user {topic} already" in again.err
    assert f"users password {topic} changes the password, and with --mechanism adds one" in again.err
    changed = run(
        "users", "password", topic, "--mechanism", "scram-sha-256", "--iterations", 4096, stdin=b"new"
    )
    assert (changed.status, changed.out) == (0, f"changed the password of {topic}\n")
    (about,) = [each for each in run("users", "list", "--json").json if each["user"] == topic]
    assert about["mechanisms"] == {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 8192}
    part = run("users", "delete", topic, "--mechanism", "SCRAM-SHA-512")
    assert part.out == f"deleted what {topic} has for SCRAM-SHA-512\n"
    assert run("users", "delete", topic, "--mechanism", "SCRAM-SHA-512").err.endswith(
        f"{topic} has nothing for SCRAM-SHA-512\n"
    )
    run("users", "password", topic, "--mechanism", "SCRAM-SHA-512", stdin=b"new")
    (about,) = [each for each in run("users", "list", "--json").json if each["user"] == topic]
    assert about["mechanisms"] == {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 8192}
    assert run("users", "delete", topic).out == f"deleted {topic}\n"
    assert topic not in names(run)


@pytest.mark.parametrize("words", [("password",), ("delete",)])
def test_nobody(run: Run, topic: str, words: tuple[str, ...]) -> None:
    done = run("users", *words, topic, stdin=b"x\n")
    assert (done.status, done.err) == (1, f"leafcuttr: there is no user {topic}\n")


@pytest.mark.parametrize(
    ("stdin", "why"), [(b"", "is empty"), (b"\n", "is empty"), (b"\xff\n", "is not UTF-8")]
)
def test_passwords_that_are_none(run: Run, topic: str, stdin: bytes, why: str) -> None:
    done = run("users", "create", topic, stdin=stdin)
    assert done.status == 2
    assert f"the password {why}" in done.err


def test_a_password_in_a_file(run: Run, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("a\nb\n")
    assert "has several lines" in run("users", "create", topic, "--password-file", file).err
    assert "No such file" in run("users", "create", topic, "--password-file", tmp_path / "none").err
    file.write_text("a\r\n")
    assert run("users", "create", topic, "--password-file", file).status == 0
    assert run("users", "delete", topic).status == 0


def test_the_first_user_of_a_broker_that_nobody_else_can_reach(run: Run, tmp_path: Path) -> None:
    """It is made before the first start; with it the others are, over the network."""
    data = tmp_path / "data"
    done = run("users", "create", "admin", "--data", data, stdin=b"sesame\n")
    assert (done.status, done.out) == (0, "created admin\n")
    assert names(run, "--data", str(data)) == ["admin"]
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "listeners": f"SASL_PLAINTEXT://{address}",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        "log.dirs": str(data),
        "connection.failed.authentication.delay.ms": "0",
    }
    login = (
        "-X",
        "security.protocol=SASL_PLAINTEXT",
        "-X",
        "sasl.username=admin",
        "-X",
        "sasl.password=sesame",
    )
    with running_broker(tmp_path / "broker", settings):
        for mechanism in ("SCRAM-SHA-512", "PLAIN"):
            found = run("users", "list", "--json", "-X", f"sasl.mechanism={mechanism}", *login, at=address)
            assert [each["user"] for each in found.json] == ["admin"]
        refused = run(
            "users", "list", "-X", "sasl.mechanism=SCRAM-SHA-512", *login[:-1], "sasl.password=x", at=address
        )
        assert refused.status == 1
        assert "Traceback" not in refused.err
        in_use = run("users", "list", "--data", data)
        assert in_use.status == 2
