"""Connections whose records are being written by a worker: they are parked in the reactor until the worker is done.

The writers are kept from beginning, so that each test says what happens meanwhile. Each case comes in two forms: as
the first request of a connection, and as one that repeats what was sent before (`server.repeated_produce`).
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.log.log import Log
from leafcuttr.runtime.writers import AT_ONCE
from leafcuttr.server import listener
from leafcuttr.server.queue import RequestQueue
from leafcuttr.wire.messages.metadata import MetadataRequest
from support.live_broker import LiveBroker, live_broker
from support.logs import batch
from support.waiting import until
from support.wire_client import WireClient, produce_request

SYNC = {"lc.log.sync.always": "true"}
FORMS = pytest.mark.parametrize("before", [0, 5], ids=["first", "repeated"])


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveBroker]:
    with live_broker(tmp_path) as found:
        found.run(partial(found.broker.topics.create, "t", 1, SYNC))
        yield found


def prepared(live: LiveBroker, before: int) -> WireClient:
    """A client that has sent so many records."""
    client = WireClient(live.address)
    assert [client.produce("t", batch()).error_code for _ in range(before)] == [0] * before
    return client


def until_staged(live: LiveBroker, count: int) -> None:
    log = live.log("t")
    until(lambda: live.call(lambda: log.next_offset) == count, "the record to be staged")


@FORMS
def test_nothing_is_answered_before_it_is_written(live: LiveBroker, before: int) -> None:
    with prepared(live, before) as client:
        with live.writers_held():
            client.send_produce("t", batch())
            until_staged(live, before + 1)
            assert live.call(lambda: live.log("t").high_watermark) == before
        answer = client.take(produce_request("t", batch(), 0, -1), 11)
        part = answer.responses[0].partition_responses[0]
        assert (part.error_code, part.base_offset) == (0, before)


@FORMS
def test_what_a_peer_sends_meanwhile_is_answered_behind_it(live: LiveBroker, before: int) -> None:
    produced, request = produce_request("t", batch(), 0, -1), MetadataRequest(topics=None)
    with prepared(live, before) as client:
        with live.writers_held():
            client.send_produce("t", batch())
            until_staged(live, before + 1)
            client.send(request, 9)
            for _ in range(3):
                client.send_produce("t", batch())
            with WireClient(live.address) as other:  # the loop goes on
                assert other.ask(request, 9).topics
        offsets = [client.take(produced, 11).responses[0].partition_responses[0].base_offset]
        assert client.take(request, 9).topics
        for _ in range(3):
            offsets.append(client.take(produced, 11).responses[0].partition_responses[0].base_offset)
        assert offsets == list(range(before, before + 4))


@FORMS
def test_a_write_that_fails_is_answered_so(live: LiveBroker, before: int) -> None:
    with prepared(live, max(before, 1)) as client:
        with live.writers_held():
            client.send_produce("t", batch())
            until_staged(live, max(before, 1) + 1)
            live.call(make_read_only, live.log("t"))
        answer = client.take(produce_request("t", batch(), 0, -1), 11)
        part = answer.responses[0].partition_responses[0]
        assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert live.call(lambda: live.log("t").high_watermark) == max(before, 1)
        assert client.produce("t", batch()).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_what_arrives_as_the_write_ends_comes_after_it(live: LiveBroker) -> None:
    """Both are seen by one look of the reactor: what is written is answered before the next request is taken."""
    writers, request, rounds = live.broker.runtime.writers, produce_request("t", batch(), 0, -1), 5
    with prepared(live, 5) as client:

        def land_and_send() -> None:
            """On the loop, which looks at nothing meanwhile."""
            writers.limit(AT_ONCE)
            client.send_produce("t", batch())
            assert select.select([writers.fileno()], [], [], 60)[0]

        for at in range(5, 5 + 3 * rounds, 3):
            with live.writers_held():
                client.send(produce_request("t", batch(), 0, 1), 11)  # acks=1 is not what was learned
                until_staged(live, at + 1)
                live.call(land_and_send)
                until_staged(live, at + 2)
                client.send_produce("t", batch())
                until_staged(live, at + 3)
        for number in range(5, 5 + 3 * rounds):
            answer = client.take(request, 11).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (0, number)


def make_read_only(log: Log) -> None:
    """Let writes to the log's descriptor fail from now on."""
    file = log.segments[-1].open_file()
    other = os.open(file.path, os.O_RDONLY)
    os.dup2(other, file.fd)
    os.close(other)


@FORMS
def test_a_peer_that_goes_away_affects_no_other(live: LiveBroker, before: int) -> None:
    with prepared(live, before) as client, live.writers_held():
        client.send_produce("t", batch())
        until_staged(live, before + 1)
        client.socket.close()
        with WireClient(live.address) as other:
            other.send_produce("t", batch())
            until_staged(live, before + 2)
    with WireClient(live.address) as other:
        assert other.produce("t", batch()).base_offset == before + 2


class OnceStopping:
    """Takes the place of a long poll: the stop of the broker asks those to end after the connections."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.give_up = call


@FORMS
def test_a_stop_answers_first(tmp_path: Path, before: int) -> None:
    with live_broker(tmp_path) as live:
        live.run(partial(live.broker.topics.create, "t", 1, SYNC))
        client, writers = prepared(live, before), live.broker.runtime.writers
        live.call(live.broker.delayed_requests.add, OnceStopping(partial(writers.limit, AT_ONCE)))
        live.call(writers.limit, 0)
        client.send_produce("t", batch())
        until_staged(live, before + 1)
    with client:
        answer = client.take(produce_request("t", batch(), 0, -1), 11)
        assert answer.responses[0].partition_responses[0].base_offset == before
        with pytest.raises(ConnectionError):
            client.produce("t", batch())


def test_many_clients_share_writes(live: LiveBroker) -> None:
    """Each gets the offsets that are its own, and they are without a gap."""
    found: list[int] = []

    def produce() -> None:
        with WireClient(live.address) as client:
            found.extend(client.produce("t", batch()).base_offset for _ in range(50))

    threads = [threading.Thread(target=produce) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(600))
    assert sum(header.count for header in live.stored("t")) == 600


def test_a_full_queue_of_requests_holds_no_answer_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While `queued.max.requests` are waiting for their turn the reactor looks at nothing."""
    queues: list[RequestQueue] = []

    def make_queue(limit: int) -> RequestQueue:
        queues.append(RequestQueue(limit))
        return queues[-1]

    monkeypatch.setattr(listener, "RequestQueue", make_queue)
    with live_broker(tmp_path, {"queued.max.requests": "1"}) as live:
        live.run(partial(live.broker.topics.create, "t", 1, SYNC))
        waiting = queues[0].waiting()
        request = MetadataRequest(topics=None)
        with prepared(live, 5) as client, WireClient(live.address) as other:
            with live.writers_held():
                client.send_produce("t", batch())
                until_staged(live, 6)
                live.call(waiting.__enter__)
                other.send(request, 9)
            answer = client.take(produce_request("t", batch(), 0, -1), 11).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (0, 5)
            live.call(waiting.__exit__, None, None, None)
            assert other.take(request, 9).topics
            assert client.produce("t", batch()).base_offset == 6
