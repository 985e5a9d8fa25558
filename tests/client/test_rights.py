"""What a cluster refuses for want of a right is named: the operation, the resource, and the command that gives it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leafcuttr.cli.root import cli
from leafcuttr.client.rights import said, said_of_request, topic_refusal
from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr_sdk.broker import LATEST
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.security import Operation
from leafcuttr_sdk.types import TopicPartition
from support.broker_process import running_broker
from support.remote_peers import new_batch, peer_at

ALL = "User:ANONYMOUS"
SEEN, OTHER = TopicPartition("seen", 0), TopicPartition("other", 0)
OFFSETS = {SEEN: CommittedOffset(1)}


def add(folder: Path, words: str) -> None:
    cli(["acls", "add", *shlex.split(words), "--data", str(folder)], standalone_mode=False)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Clients may see the topic, the group and the transactional id `seen`, and make that topic."""
    folder = tmp_path_factory.mktemp("guarded")
    add(folder / "data", f"{ALL} describe --topic seen --group seen --transactional-id seen")
    add(folder / "data", f"{ALL} create --topic seen")
    add(folder / "data", f"{ALL} read --group readable")
    settings = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    with running_broker(folder, settings) as broker:
        yield broker.address


async def read(peer: Peer, tp: TopicPartition) -> None:
    async with peer.reader() as reader:
        reader.assign({tp: 0})
        for each in await reader.read():
            if each.error is not None:
                raise each.error


async def write(peer: Peer, tp: TopicPartition) -> None:
    async with peer.appender() as appender:
        (answer,) = await appender.append([new_batch(tp, b"x")])
        assert isinstance(answer, BrokerError)
        raise answer


async def begin(peer: Peer, name: str) -> None:
    async with peer.transaction(name) as producer, producer.begin():
        raise AssertionError("it may")


async def claim(peer: Peer, name: str) -> None:
    async with peer.claim(name):
        raise AssertionError("it may")


CASES: list[tuple[Callable[[Peer], Awaitable[Any]], str, str, str, str]] = [
    (lambda peer: peer.commit("other", OFFSETS), "", "READ", "group", "other"),
    (lambda peer: peer.commit("seen", OFFSETS), "", "READ", "group", "seen"),
    (lambda peer: peer.commit("readable", OFFSETS), "committing seen-0: ", "READ", "topic", "seen"),
    (lambda peer: peer.committed("other"), "", "DESCRIBE", "group", "other"),
    (lambda peer: peer.group_is_active("other"), "", "DESCRIBE", "group", "other"),
    (lambda peer: claim(peer, "other"), "", "READ", "group", "other"),
    (lambda peer: claim(peer, "seen"), "", "READ", "group", "seen"),
    (lambda peer: begin(peer, "other"), "", "WRITE", "transactional id", "other"),
    (lambda peer: begin(peer, "seen"), "", "WRITE", "transactional id", "seen"),
    (lambda peer: peer.topics(["other"]), "other: ", "DESCRIBE", "topic", "other"),
    (lambda peer: peer.topic_configs(["seen"]), "", "DESCRIBE_CONFIGS", "topic", "seen"),
    (lambda peer: peer.offsets({OTHER: LATEST}), "other: ", "DESCRIBE", "topic", "other"),
    (lambda peer: peer.ensure_topic("other"), "other: ", "DESCRIBE or CREATE", "topic", "other"),
    (lambda peer: peer.create_topic("other", partitions=1), "", "CREATE", "topic", "other"),
    (lambda peer: peer.alter_topic("seen", {"retention.ms": "1"}), "", "ALTER_CONFIGS", "topic", "seen"),
    (lambda peer: peer.add_partitions("seen", 9), "", "ALTER", "topic", "seen"),
    (lambda peer: read(peer, OTHER), "other: ", "READ", "topic", "other"),
    (lambda peer: read(peer, SEEN), "seen-0 at offset 0: ", "READ", "topic", "seen"),
    (lambda peer: write(peer, OTHER), "other: ", "WRITE", "topic", "other"),
    (lambda peer: write(peer, SEEN), "seen-0: ", "WRITE", "topic", "seen"),
]  # fmt: skip


async def test_each_call_names_the_right_that_it_lacks(guarded: str, tmp_path: Path) -> None:
    async with peer_at(guarded) as peer:
        await peer.create_topic("seen", partitions=1)
        for number, (call, place, operation, kind, name) in enumerate(CASES):
            with pytest.raises(BrokerError) as caught:
                await call(peer)
            line = str(caught.value)
            begin_ = f"{place}the client may not {operation} {kind} {name} (allowed by: leafcuttr acls add PRINCIPAL "
            assert line.startswith(begin_), (number, line)
            assert "\n" not in line
            command = re.search(r"allowed by: leafcuttr acls add (.*?)(;.*)?\)$", line)
            assert command is not None
            add(tmp_path / "data", command[1])


READ = Operation.READ
GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    "text", [None, "", "Group authorization failed.", "authorization failed", "Topic Authorization Failed"]
)
def test_what_names_nothing_is_replaced(text: str | None) -> None:
    assert said(GROUP, text, "g", READ) == (
        "the client may not READ group g (allowed by: leafcuttr acls add PRINCIPAL read --group g)"
    )


def test_a_reason_of_the_broker_s_own_stays() -> None:
    assert said(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "only its plugin writes to it", "t", READ) == (
        "only its plugin writes to it"
    )
    assert said(ErrorCode.INVALID_GROUP_ID, None, "g", READ) is None
    assert said(4711, "what", "g", READ) == "what"


def test_names_are_words_of_a_shell_and_bounded() -> None:
    assert str(said(GROUP, None, "it's; rm", READ)).endswith("""read --group 'it'"'"'s; rm')""")
    assert said(GROUP, None, "a\nb", READ) == "the client may not READ group 'a\\nb'"
    assert len(str(said(GROUP, None, "x" * 30_000, READ))) < 300


def test_what_includes_describe_is_said() -> None:
    line = str(topic_refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "t-0", "t", Operation.DESCRIBE))
    assert line == (
        "t-0: the client may not DESCRIBE topic t (allowed by: leafcuttr acls add PRINCIPAL describe --topic t;"
        " read and write include it)"
    )
    assert str(topic_refusal(ErrorCode.MESSAGE_TOO_LARGE, "t-0", "t", READ)) == "t-0: message too large"


def request(kind: str, **fields: Any) -> Any:
    return type(kind, (SimpleNamespace,), {})(**fields)


@pytest.mark.parametrize(
    ("asked", "code", "key", "line"),
    [
        (request("TxnOffsetCommitRequest", group_id="g", transactional_id="x"), 53, "g", "WRITE transactional id x"),
        (request("TxnOffsetCommitRequest", group_id="g", transactional_id="x"), 30, "g", "READ group g"),
        (request("AddOffsetsToTxnRequest", group_id="g", transactional_id="x"), 30, "x", "READ group g"),
        (request("AddPartitionsToTxnRequest"), 53, "x", "WRITE transactional id x"),
        (request("EndTxnRequest", transactional_id="x"), 53, "x", "WRITE transactional id x"),
        (request("DescribeTransactionsRequest"), 53, "x", "DESCRIBE transactional id x"),
        (request("InitProducerIdRequest", transactional_id=None), 31, "", "IDEMPOTENT_WRITE on the cluster"),
        (request("ListGroupsRequest"), 31, "", "DESCRIBE on the cluster"),
    ],
)  # fmt: skip
def test_of_a_request(asked: Any, code: int, key: str, line: str) -> None:
    assert str(said_of_request(asked, code, None, key)).startswith(f"the client may not {line} (allowed by: ")


def test_what_is_not_known_is_left_as_it_is() -> None:
    assert said_of_request(request("MetadataRequest", topics=None), 31, None) is None
    several = [SimpleNamespace(name="a"), SimpleNamespace(name="b")]
    assert said_of_request(request("CreateTopicsRequest", topics=several), 29, "Authorization failed.") == (
        "Authorization failed."
    )
