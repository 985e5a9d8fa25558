"""A start with much to remember: 100,000 committed offsets and 10,000 transactional ids.

    python tests/bench/coordinators.py [--runs 3]       LeafCuttr alone; run.py has the case beside Kafka

Each id has had a transaction, and nothing has been compacted yet: 10,000 commits of ten offsets and 40,000 records of
transactions lie in the two internal topics.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers import LeafCuttr, Peer
from rawclient import seconds_to_first_ack

from leafcuttr.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from leafcuttr.wire.messages.describe_transactions import DescribeTransactionsRequest
from leafcuttr.wire.messages.end_txn import EndTxnRequest
from leafcuttr.wire.messages.find_coordinator import FindCoordinatorRequest
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest
from leafcuttr.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from leafcuttr.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from support.waiting import until
from support.wire_client import WireClient

GROUPS, OFFSETS, AT_ONCE = 1_000, 100, 10
IDS = 10_000
TOPIC = "remembered"
_GROUP, _TRANSACTION = 0, 1
_AHEAD = 50
_LOADING = 14  # COORDINATOR_LOAD_IN_PROGRESS
_NOT_FOUND = 105  # TRANSACTIONAL_ID_NOT_FOUND


def remembered(peer: Peer, run: int) -> dict[str, float]:
    """Fill, kill, start: seconds to the first acknowledgement, and until every group and every id is known."""
    fill(peer)
    peer.stop(signal.SIGKILL)
    began = time.monotonic()
    peer.start()
    first = seconds_to_first_ack(peer.port, "first", began)
    wait_until_known(peer.address)
    return {"first_ack_s": first, "known_s": time.monotonic() - began, "cpu_s": peer.cpu_s()}


def fill(peer: Peer) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    seconds_to_first_ack(peer.port, "first", time.monotonic())
    admin = AdminClient({"bootstrap.servers": peer.address})
    admin.create_topics([NewTopic(TOPIC, OFFSETS, 1)])[TOPIC].result(60)
    for key_type, name in ((_GROUP, group(0)), (_TRANSACTION, id_(0))):
        until(lambda: coordinated(peer.address, key_type, name), "a coordinator", seconds=60)  # noqa: B023
    wait_until_known(peer.address)
    with WireClient(peer.address) as client:
        commits = [commit(number, first) for number in range(GROUPS) for first in range(0, OFFSETS, AT_ONCE)]
        for answer in pipelined(client, commits, 8):
            check(part.error_code for part in answer.topics[0].partitions)
        inits = [
            InitProducerIdRequest(transactional_id=id_(number), transaction_timeout_ms=60_000)
            for number in range(IDS)
        ]
        producers = pipelined(client, inits, 4)
        # Kafka says so as well where it has run out of producer ids for the moment.
        while again := [at for at, answer in enumerate(producers) if answer.error_code == _LOADING]:
            for at, answer in zip(again, pipelined(client, [inits[at] for at in again], 4), strict=True):
                producers[at] = answer
        check(answer.error_code for answer in producers)
        names = [(id_(number), answer.producer_id) for number, answer in enumerate(producers)]
        adds = [
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[number % OFFSETS])],
            )
            for number, (name, producer_id) in enumerate(names)
        ]
        for answer in pipelined(client, adds, 3):
            check(
                part.partition_error_code
                for part in answer.results_by_topic_v3_and_below[0].results_by_partition
            )
        ends = [
            EndTxnRequest(transactional_id=name, producer_id=producer_id, committed=True)
            for name, producer_id in names
        ]
        check(answer.error_code for answer in pipelined(client, ends, 3))


def group(number: int) -> str:
    return f"group-{number:04}"


def id_(number: int) -> str:
    return f"transactional-{number:05}"


def commit(number: int, first: int) -> OffsetCommitRequest:
    parts = [
        OffsetCommitRequestPartition(partition_index=first + each, committed_offset=number)
        for each in range(AT_ONCE)
    ]
    return OffsetCommitRequest(
        group_id=group(number), topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=parts)]
    )


def pipelined(client: WireClient, requests: list[Any], version: int) -> list[Any]:
    """The answers; some requests are always under way."""
    answers = []
    for at in range(len(requests) + _AHEAD):
        if at < len(requests):
            client.send(requests[at], version)
        if at >= _AHEAD:
            answers.append(client.take(requests[at - _AHEAD], version))
    return answers


def check(codes: Any) -> None:
    bad = {code for code in codes if code}
    if bad:
        raise RuntimeError(f"the broker answered with errors {bad}")


def coordinated(address: str, key_type: int, name: str) -> bool:
    """Whether there is a coordinator that answers; asking makes the internal topic."""
    with WireClient(address) as client:
        answer = client.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name]), 4)
        if answer.coordinators[0].error_code:
            return False
        return not (unknown_groups(client, [name]) if key_type == _GROUP else unknown_ids(client, [name]))


def wait_until_known(address: str) -> None:
    """Return when the coordinators have read all back. Of what they do not know yet only one is asked for, again and
    again: the broker has to work, not to answer."""
    with WireClient(address) as client:
        for ask, names in (
            (unknown_groups, [group(number) for number in range(GROUPS)]),
            (unknown_ids, [id_(number) for number in range(IDS)]),
        ):
            while names:
                until(lambda: not ask(client, names[:1]), names[0], seconds=120, pause=0.005)  # noqa: B023
                names = ask(client, names)


def unknown_groups(client: WireClient, names: list[str]) -> list[str]:
    topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
    asked = [OffsetFetchRequestGroup(group_id=name, topics=topics) for name in names]
    found = client.ask(OffsetFetchRequest(groups=asked), 8).groups
    return [each.group_id for each in found if each.error_code]


def unknown_ids(client: WireClient, names: list[str]) -> list[str]:
    found = client.ask(DescribeTransactionsRequest(transactional_ids=names), 0).transaction_states
    return [each.transactional_id for each in found if each.error_code not in (0, _NOT_FOUND)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="only fill, and leave the data here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="leafcuttr-bench-") as folder:
        peer = LeafCuttr("leafcuttr", options.keep or Path(folder) / "leafcuttr")
        try:
            for run in range(options.runs):
                if not peer.pid:
                    peer.start()
                if options.keep:
                    fill(peer)
                    return
                print({name: round(value, 3) for name, value in remembered(peer, run).items()})
                peer.stop()
                peer.wipe()
        finally:
            peer.stop()


if __name__ == "__main__":
    main()
