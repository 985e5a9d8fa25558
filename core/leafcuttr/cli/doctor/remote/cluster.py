"""The health of a cluster: leaders, disks, clocks; and whether a record that is sent can be read."""

import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from leafcuttr.cli.doctor.findings import DoctorFinding, fine, problem, skipped, warning
from leafcuttr.cli.doctor.fullness import fullness
from leafcuttr.cli.doctor.remote.remote_broker import Node, RemoteBroker
from leafcuttr.client.errors import ClientError
from leafcuttr.client.settings import HostPort
from leafcuttr.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from leafcuttr.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)

_CLOCK_WARNING_S: Final = 5.0
# message.timestamp.after.max.ms by default: what is further ahead of the broker's clock it does not take.
_CLOCK_PROBLEM_S: Final = 3600.0
_SHOWN: Final = 5


def has_leaders(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """Every partition has a leader."""
    assert target.cluster is not None
    lost = target.cluster.leaderless
    if not lost:
        yield fine("every partition has a leader")
        return
    shown = ", ".join(lost[:_SHOWN]) + (f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else "")
    yield problem(
        f"{len(lost)} partition{'s are' if len(lost) > 1 else ' is'} offline: {shown}",
        "No client can write to or read from them.",
        "the broker's log says why; with LeafCuttr, when it is stopped: leafcuttr verify DIRECTORY, "
        "then leafcuttr repair DIRECTORY",
        "with Kafka, start the brokers that have their replicas",
    )


def disks_have_space(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """The volumes of the brokers that can be reached are not nearly full, and none has failed."""
    nodes = target.reachable or [Node(-1, target.host, target.port)]
    with ThreadPoolExecutor(len(nodes[:16])) as threads:
        for found in threads.map(lambda node: _disks_of(target, node), nodes):
            yield from found


def _disks_of(target: RemoteBroker, node: Node) -> list[DoctorFinding]:
    name = "the broker" if node.id < 0 else str(node)
    try:
        with target.connect(HostPort(node.host, node.port)) as peer:
            answer = peer.request(DescribeLogDirsRequest(topics=None))
    except ClientError as error:
        return [skipped(f"{name} does not describe its directories: {error}")]
    findings = []
    for one in answer.results:
        if one.error_code:
            findings.append(
                problem(
                    f"{name}: the directory {one.log_dir} has failed (error {one.error_code})",
                    "Its partitions are offline.",
                    "see the kernel's log (dmesg) and the broker's; replace the disk or mount it again",
                )
            )
        elif getattr(one, "total_bytes", -1) <= 0:
            findings.append(
                skipped(f"{name} does not report how full {one.log_dir} is (Kafka 3.3 and later do)")
            )
        else:
            findings.append(fullness(f"{name}: the disk of {one.log_dir}", one.usable_bytes, one.total_bytes))
    return findings or [skipped(f"{name} reports no directory")]


def clocks_agree(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """The clocks of the broker and of this machine differ little.

    Kafka has no request for the time. The response of DescribeQuorum (KIP-836) carries the current time of the leader
    of the controllers, which in a cluster of one is the broker.
    """
    try:
        with target.connect() as peer:
            before = time.time()
            answer = peer.request(_quorum())
            after = time.time()
    except ClientError as error:
        yield skipped(f"the broker does not report its time ({error}); --write finds it by a record")
        return
    there = [
        voter.last_fetch_timestamp / 1000
        for topic in answer.topics
        for part in topic.partitions
        for voter in part.current_voters
        if voter.replica_id == part.leader_id and voter.last_fetch_timestamp > 0
    ]
    if not there:
        yield skipped("the broker does not report its time; --write finds it by a record")
        return
    yield _clock(there[0] - (before + after) / 2, (after - before) / 2)


def _quorum() -> DescribeQuorumRequest:
    part = RequestPartitionData(partition_index=0)
    return DescribeQuorumRequest(
        topics=[RequestTopicData(topic_name="__cluster_metadata", partitions=[part])]
    )


def _clock(ahead: float, unsure: float) -> DoctorFinding:
    """`ahead` in seconds: the broker's clock against that of this machine."""
    beyond = abs(ahead) - unsure
    if beyond < _CLOCK_WARNING_S:
        return fine(f"the clocks of the broker and of this machine agree to {max(abs(ahead), unsure):.1f} s")
    which = "ahead of" if ahead > 0 else "behind"
    kind = problem if beyond > _CLOCK_PROBLEM_S else warning
    return kind(
        f"the broker's clock is {abs(ahead):.0f} s {which} that of this machine",
        "Records carry the clients' time and are deleted by the broker's: with clocks apart they go too early or too "
        "late, offsets by time are wrong, and a time more than message.timestamp.after.max.ms ahead is refused.",
        "on both machines: timedatectl set-ntp true",
        "or let the broker set the time: leafcuttr configs alter broker --default "
        "--set log.message.timestamp.type=LogAppendTime",
    )


def takes_a_record(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """With --write: a topic is created, a record is sent and read back, the topic is deleted."""
    if not target.writes:
        yield skipped("nothing was written; --write sends a record through a topic of its own")
        return
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

    topic = f"leafcuttr-doctor-{secrets.token_hex(4)}"
    admin = AdminClient(target.client_settings())
    config = {"message.timestamp.type": "LogAppendTime"}
    try:
        _done(
            admin.create_topics([NewTopic(topic, 1, -1, config=config)], request_timeout=target.timeout * 2)
        )
    except KafkaException as error:
        yield problem(
            f"no topic could be created: {error.args[0].str()}",
            "Without a topic no record can be written.",
            "see what the broker said; the user may lack the right to create topics",
        )
        return
    try:
        yield from _send_and_read(target, topic)
    except KafkaException as error:
        yield problem(
            f"a record could not be read back: {error.args[0].str()}",
            "Producers and consumers on this machine meet the same.",
            "see the broker's log",
        )
    finally:
        _done(admin.delete_topics([topic], request_timeout=target.timeout * 2))


def _send_and_read(target: RemoteBroker, topic: str) -> Iterator[DoctorFinding]:
    from confluent_kafka import Consumer, Producer, TopicPartition

    value = secrets.token_bytes(32)
    settings = {**target.client_settings(), "topic.metadata.refresh.fast.interval.ms": 50}
    began = time.time()
    producer = Producer({**settings, "message.timeout.ms": int(target.timeout * 2000), "linger.ms": 0})
    answers: list[Any] = []
    producer.produce(topic, value, on_delivery=lambda error, record: answers.append((error, record)))
    producer.flush(target.timeout * 3)
    acknowledged = time.time()
    if not answers or answers[0][0] is not None:
        yield problem(
            f"a record was not acknowledged: {answers[0][0].str() if answers else 'no answer in time'}",
            "Every producer on this machine meets the same.",
            "see the broker's log",
        )
        return
    consumer = Consumer({**settings, "group.id": topic, "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        record = consumer.poll(target.timeout * 3)
    finally:
        consumer.close()
    if record is None or record.error() or record.value() != value:
        said = "nothing" if record is None else record.error() or "another one"
        yield problem(
            f"a record was sent, and {said} was read back",
            "Consumers read something else.",
            "see the broker's log",
        )
        return
    yield fine(f"a record was acknowledged after {acknowledged - began:.3f} s and read back unchanged")
    _, written = record.timestamp()
    middle = (began + acknowledged) / 2
    yield _clock(written / 1000 - middle, (acknowledged - began) / 2)


def _done(futures: dict[str, Any], wait: Callable[[Any], Any] = lambda future: future.result(30)) -> None:
    for future in futures.values():
        wait(future)
