"""`leafcuttr acls` with an authorizer, without one, on a data directory that no broker uses; kafka-acls.sh."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support import jars
from support.broker_process import running_broker
from support.waiting import free_port

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker whose clients are super users but for what they deny themselves."""
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "listeners": f"PLAINTEXT://{address}",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with running_broker(tmp_path_factory.mktemp("secured"), settings):
        yield address


def test_acls_come_and_go(run: Run, secured: str) -> None:
    done = run("acls", "add", "alice", "read", "DESCRIBE", "--topic", "orders", "--group", "g", at=secured)
    assert (done.status, done.out.splitlines()) == (
        0,
        [
            "added: allow User:alice READ on topic orders from *",
            "added: allow User:alice DESCRIBE on topic orders from *",
            "added: allow User:alice READ on group g from *",
            "added: allow User:alice DESCRIBE on group g from *",
        ],
    )
    more = ("--topic", "ord", "--prefixed", "--deny", "--host", "10.0.0.1")
    assert run("acls", "add", "User:*", "all", *more, at=secured).status == 0
    table = run("acls", "list", "--topic", "orders", at=secured).out
    assert "User:alice  allow       read       topic     orders  *" in table
    assert "ord..." not in table
    (denied,) = run("acls", "list", "--deny", "--json", at=secured).json
    assert denied == {
        "principal": "User:*",
        "permission": "DENY",
        "operation": "ALL",
        "resource_type": "TOPIC",
        "pattern_type": "PREFIXED",
        "resource_name": "ord",
        "host": "10.0.0.1",
    }
    gone = run("acls", "remove", "--principal", "alice", "--operation", "describe", at=secured)
    assert gone.out.splitlines() == [
        "removed: allow User:alice DESCRIBE on topic orders from *",
        "removed: allow User:alice DESCRIBE on group g from *",
    ]
    assert len(run("acls", "list", "--json", at=secured).json) == 3


def test_which_rule_decides(run: Run, secured: str) -> None:
    run("acls", "add", "bob", "write", "--topic", "paid", at=secured)

    def check(*words: str) -> tuple[int, str]:
        done = run("acls", "check", *words, at=secured)
        return done.status, done.out

    rule = "allow User:bob WRITE on topic paid from *"
    assert check("bob", "write", "--topic", "paid") == (0, f"allowed: paid: {rule}\n")
    assert check("bob", "describe", "--topic", "paid") == (0, f"allowed: paid: {rule}\n")
    assert check("bob", "read", "--topic", "paid") == (1, "denied: paid: no ACL allows it\n")
    assert check("ANONYMOUS", "read", "--topic", "paid") == (0, "allowed: paid: super user\n")
    assert check("bob", "alter", "--cluster") == (1, "denied: kafka-cluster: no ACL of this resource\n")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("add", "alice", "read"), "what for?"),
        (("add", "alice", "fly", "--topic", "t"), "fly: no operation; there are all, read"),
        (("add", "alice", "write", "--group", "g"), "write means nothing for a group; there are read"),
        (("add", "alice", "read", "--topic", ""), "the name of a resource is empty"),
        (("add", ":x", "read", "--topic", "t"), "not a principal"),
        (("remove",), "which ones?"),
        (("check", "alice", "read"), "on what?"),
    ],
)
def test_wrong_usage(run: Run, secured: str, words: tuple[str, ...], why: str) -> None:
    done = run("acls", *words, at=secured)
    assert done.status == 2
    assert why in done.err


def test_without_an_authorizer(run: Run, own_address: str) -> None:
    done = run("acls", "list", at=own_address)
    assert done.status == 1
    assert done.err == "leafcuttr: ACLs: No Authorizer is configured on the broker (SECURITY_DISABLED)\n"
    done = run("acls", "add", "alice", "read", "--topic", "t", at=own_address)
    assert "No Authorizer is configured (SECURITY_DISABLED)" in done.err
    assert run("acls", "remove", "--topic", "t", at=own_address).status == 1


def test_before_the_first_start(run: Run, tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    assert run("acls", "add", "alice", "read", "write", "--topic", "t", *data).status == 0
    assert run("acls", "check", "alice", "read", "--topic", "t", *data).status == 0
    assert run("acls", "remove", "--operation", "write", *data).out == (
        "removed: allow User:alice WRITE on topic t from *\n"
    )
    assert [one["operation"] for one in run("acls", "list", "--json", *data).json] == ["READ"]


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.parametrize("version", ["3.9.1", "4.3.1"])
def test_kafka_acls_sh(run: Run, secured: str, version: str) -> None:
    def acls(*words: str) -> str:
        command = jars.java(
            version, "kafka.admin.AclCommand" if version < "4" else "org.apache.kafka.tools.AclCommand",
            "--bootstrap-server", secured, *words,
        )  # fmt: skip
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    topic = f"java-{version}"
    told = acls("--add", "--allow-principal", "User:carol", "--producer", "--topic", topic)
    assert "operation=WRITE" in told
    found = {one["operation"] for one in run("acls", "list", "--topic", topic, "--json", at=secured).json}
    assert found == {"WRITE", "DESCRIBE", "CREATE"}
    assert "User:carol" in acls("--list", "--topic", topic)
    acls("--remove", "--force", "--topic", topic)
    assert run("acls", "list", "--topic", topic, "--json", at=secured).json == []
