"""A cluster over the network as a blocking peer. What its contract says is checked in test_blocking_contract.py."""

from __future__ import annotations

import itertools
import logging
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import confluent_kafka
import pytest

from leafcuttr.client.blocking import peer as blocking_peer
from leafcuttr.client.blocking.peer import open_blocking_peer
from leafcuttr.client.errors import ClientSettingError
from leafcuttr.errors import RequestTimedOut, UnknownTopicOrPartition
from leafcuttr_sdk.blocking_peers import BlockingPeer, SharedTransaction, open_peer
from leafcuttr_sdk.broker import LATEST
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.records import Appended
from leafcuttr_sdk.types import TopicPartition
from support import executors, librdkafka
from support.broker_process import running_broker
from support.remote_peers import QUICK, new_batch, values_in
from support.tls_peer import Certificates
from support.waiting import free_port, until

Call = Callable[[BlockingPeer], object]
NUMBERS = itertools.count()


def opened(address: str, **more: str) -> AbstractContextManager[BlockingPeer]:
    """`more` are settings of the client, with underscores for dots."""
    return open_peer(
        {
            "bootstrap.servers": address,
            **QUICK,
            **{name.replace("_", "."): text for name, text in more.items()},
        }
    )


@pytest.fixture
def blocking(address: str) -> Iterator[BlockingPeer]:
    with opened(address) as found:
        yield found


@pytest.fixture
def topic(blocking: BlockingPeer) -> str:
    """A new topic of three partitions."""
    name = f"topic-{next(NUMBERS)}"
    blocking.create_topic(name, partitions=3)
    return name


def test_what_it_is(blocking: BlockingPeer, address: str) -> None:
    assert blocking.name == address
    assert blocking.trouble is None
    assert len(blocking.cluster_id()) == 22
    assert blocking.has_transactions()


TP = TopicPartition("t", 0)
CALLS: dict[str, Call] = {
    "cluster_id": lambda peer: peer.cluster_id(),
    "has_transactions": lambda peer: peer.has_transactions(),
    "topics": lambda peer: peer.topics(),
    "topic_configs": lambda peer: peer.topic_configs(["t"]),
    "create_topic": lambda peer: peer.create_topic("t", partitions=1),
    "leaders": lambda peer: peer.leaders([TP]),
    "offsets": lambda peer: peer.offsets({TP: LATEST}),
    "committed": lambda peer: peer.committed("g"),
    "commit": lambda peer: peer.commit("g", {TP: CommittedOffset(1)}),
    "owner": lambda peer: peer.owner("x").__enter__(),
}


def test_a_cluster_that_is_away_is_said_by_every_call() -> None:
    address = f"127.0.0.1:{free_port()}"
    with opened(address, request_timeout_ms="60", delivery_timeout_ms="60") as peer:
        for call in CALLS.values():
            with pytest.raises(RequestTimedOut, match=f"no broker answers at {address}"):
                call(peer)
        assert peer.trouble == f"no broker answers at {address}"
        with peer.appender() as appender:
            (answer,) = appender.append([new_batch(TP, b"a")])
            assert isinstance(answer, RequestTimedOut)


def test_settings_that_cannot_be_used_and_those_that_mean_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Before anything is opened: where a pipeline is checked, not in an executor."""
    with pytest.raises(ClientSettingError, match=r"request\.timeout\.ms=soon"):
        open_peer({"bootstrap.servers": "h:1", "request.timeout.ms": "soon"})
    unknown = {"bootstrap.servers": "h:1", "bootstrap.sevrers": "x"}
    with pytest.raises(ClientSettingError, match=r'No such configuration property: "bootstrap\.sevrers"'):
        open_peer(unknown, strict=True)
    with caplog.at_level(logging.WARNING):
        open_blocking_peer(unknown)
    assert caplog.messages == ["the client of h:1 does not know the settings bootstrap.sevrers"]


def test_nothing_goes_on_behind_its_end(address: str) -> None:
    before = threading.active_count()
    with opened(address) as peer:
        peer.cluster_id()
        assert threading.active_count() > before
    until(lambda: threading.active_count() == before, "the end of its thread", seconds=10)
    with pytest.raises(RuntimeError, match="closed"):
        peer.cluster_id()


def test_leaders_have_an_address_that_answers(blocking: BlockingPeer, address: str, topic: str) -> None:
    tps = [TopicPartition(topic, number) for number in range(4)]
    leaders = blocking.leaders(tps)
    assert sorted(leaders) == tps[:3]
    assert {f"{each.host}:{each.port}" for each in leaders.values()} == {address}
    assert {each.leader_epoch >= 0 for each in leaders.values()} == {True}
    assert blocking.leaders([]) == {}


def test_a_range_is_read_with_a_few_large_fetches(blocking: BlockingPeer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    with blocking.appender() as appender:
        for number in range(100):
            appender.send([new_batch(tp, b"%d" % number * 1000)])
        assert appender.flush() == {tp: 100}
    found: list[bytes] = []
    reads = 0
    with blocking.reader(partition_bytes=1 << 20) as reader:
        reader.assign({tp: 10})
        at = 10
        while at < 100:
            (read,) = reader.read(10)
            found += values_in(read)
            at, reads = read.next_offset, reads + 1
    assert found == [b"%d" % number * 1000 for number in range(10, 100)]
    assert reads <= 3


def test_a_wait_can_be_interrupted_and_loses_nothing(blocking: BlockingPeer, topic: str) -> None:
    tp, main = TopicPartition(topic, 0), threading.get_ident()
    with blocking.reader() as reader:
        reader.assign({tp: 0})
        timer = threading.Timer(0.05, partial(signal.pthread_kill, main, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            reader.read()
        with blocking.appender() as appender:
            assert appender.append([new_batch(tp, b"a")]) == [Appended(0, 0)]
        (read,) = reader.read(10)
        assert values_in(read) == [b"a"]


def test_a_peer_that_was_opened_before_a_fork_says_so(blocking: BlockingPeer) -> None:
    def child() -> None:
        with pytest.raises(RuntimeError, match="each process opens its own"):
            blocking.cluster_id()

    process = get_context("fork").Process(target=child)
    process.start()
    process.join(20)
    assert process.exitcode == 0


def test_a_forked_process_drops_what_it_cannot_use(address: str, topic: str) -> None:
    """Without a word, and without an effect on its parent: workers of Spark are forked so."""
    stack = ExitStack()
    peer = stack.enter_context(opened(address))
    owner = stack.enter_context(peer.owner(f"x-{topic}"))
    stack.enter_context(peer.reader())
    shared = owner.begin()

    def child(stack: ExitStack) -> None:
        said: list[object] = []
        sys.unraisablehook = said.append
        logging.getLogger("leafcuttr").addHandler(Noting(said))
        managers = [one.__self__ for _, one in stack.pop_all()._exit_callbacks]  # type: ignore[attr-defined]
        for manager in reversed(managers):
            manager.gen.close()
        os._exit(len(said))

    process = get_context("fork").Process(target=child, args=(stack,))
    process.start()
    process.join(20)
    assert process.exitcode == 0
    with stack:
        with peer.join(shared) as joined:
            assert joined.append([new_batch(TopicPartition(topic, 0), b"a")]) == [Appended(0, 0)]
        owner.commit({TopicPartition(topic, 0): 1})


class Noting(logging.Handler):
    def __init__(self, said: list[object]) -> None:
        super().__init__()
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record)


def test_processes_write_to_one_transaction(blocking: BlockingPeer, address: str, topic: str) -> None:
    """Each is sent the settings and the transaction, and has nothing of a broker."""
    tps = [TopicPartition(topic, number) for number in range(2)]
    properties = {"bootstrap.servers": address}
    with ProcessPoolExecutor(2, get_context("spawn")) as processes, blocking.owner(f"x-{topic}") as owner:
        shared = owner.begin()
        futures = [processes.submit(executors.write, properties, shared, tp, [b"a", b"b"]) for tp in tps]
        results = [future.result(60) for future in futures]
        assert results == [({tp: 2}, []) for tp in tps]
        assert blocking.offsets(dict.fromkeys(tps, LATEST), committed=True) == dict.fromkeys(tps, 0)
        owner.commit_offsets(f"g-{topic}", {tps[0]: CommittedOffset(7, "batch 7")})
        owner.commit(dict.fromkeys(tps, 2))
    until(
        lambda: blocking.offsets(dict.fromkeys(tps, LATEST), committed=True) == dict.fromkeys(tps, 3),
        "the markers",
        seconds=10,
    )
    # And so another client sees it.
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": f"g-{topic}", "isolation.level": "read_committed"}
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, tp.partition, 0) for tp in tps])
        messages = consumer.consume(4, 20)
        assert sorted((each.partition(), each.value()) for each in messages) == [
            (0, b"a"),
            (0, b"b"),
            (1, b"a"),
            (1, b"b"),
        ]
        (committed,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], 20)
        assert (committed.offset, committed.metadata) == (7, "batch 7")
    finally:
        consumer.close()


def test_a_partition_that_does_not_exist_is_refused(blocking: BlockingPeer, topic: str) -> None:
    with blocking.owner(f"x-{topic}") as owner:
        shared = owner.begin()
        assert pickle.loads(pickle.dumps(shared)) == shared
        with blocking.join(shared) as joined:
            joined.send([new_batch(TopicPartition("nowhere", 0), b"a")])
            with pytest.raises(UnknownTopicOrPartition):
                joined.flush()


def test_what_an_exception_leaves_open_is_aborted_and_it_comes_out(
    blocking: BlockingPeer, topic: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the abort fails: a line says so."""
    tp = TopicPartition(topic, 0)
    with caplog.at_level(logging.WARNING):
        with pytest.raises(KeyError, match="mine"), blocking.owner(f"x-{topic}") as owner:
            with blocking.join(owner.begin()) as joined:
                joined.append([new_batch(tp, b"gone")])
            raise KeyError("mine")
        until(lambda: blocking.offsets({tp: LATEST}, committed=True) == {tp: 2}, "the marker", seconds=10)
        assert caplog.messages == []
        away = f"127.0.0.1:{free_port()}"
        monkeypatch.setattr(blocking_peer, "PATIENCE_S", 0.1)
        with (
            opened(away) as peer,
            pytest.raises(KeyError, match="mine"),
            peer.owner(SharedTransaction("x", 1, 1, 2, 1000)),
        ):
            raise KeyError("mine")
    assert caplog.messages == [
        f"the transaction of 'x' is left to its timeout, aborting it failed: no broker answers at {away}"
    ]


@pytest.mark.long
def test_over_tls_with_a_password_and_certificates_as_text(tmp_path: Path) -> None:
    """All that an executor needs is in the properties."""
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    ours = Certificates(tmp_path)
    address, open_address = (f"127.0.0.1:{free_port()}" for _ in range(2))
    settings = {
        "listeners": f"SASL_SSL://{address},PLAINTEXT://{open_address}",
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    properties = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": Path(ours.trusted).read_text(),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ada",
        "sasl.password": "sesame",
        "request.timeout.ms": "5000",
    }
    with running_broker(tmp_path / "data", settings):
        upsertion = UserScramCredentialUpsertion(
            "ada", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"sesame"
        )
        admin = AdminClient({"bootstrap.servers": open_address})
        for future in admin.alter_user_scram_credentials([upsertion]).values():
            future.result(60)
        librdkafka.create(open_address, "t")
        with open_peer(pickle.loads(pickle.dumps(properties)), strict=True) as peer, peer.owner("x") as owner:
            shared = owner.begin()
            with peer.join(shared) as joined:
                assert joined.append([new_batch(TP, b"a")]) == [Appended(0, 0)]
            owner.commit({TP: 1})
            with peer.reader() as reader:
                reader.assign({TP: 0})
                (read,) = reader.read(10)
                assert values_in(read) == [b"a"]
        refused = properties | {"sasl.password": "wrong"}
        with open_peer(refused) as peer, pytest.raises(RequestTimedOut, match="refuse"):
            peer.topics()
