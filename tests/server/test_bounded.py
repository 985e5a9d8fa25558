"""What is kept by a name or an address of a peer's choice is bounded, with real sockets where that matters."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from leafcuttr.config.settings import Settings
from leafcuttr.errors import ErrorCode, StorageError
from leafcuttr.server.listener import _MOST_REFUSED, Connections
from leafcuttr.state.broker import Broker, open_broker
from leafcuttr.state.chains import Instance, Tables
from leafcuttr.state.groups.idle import MOST_IDLE
from leafcuttr.wire.messages.list_groups import ListGroupsRequest
from leafcuttr_sdk import Clock
from support.groups import join_request
from support.peer import connect

Serve = Callable[..., Awaitable[Broker]]


@pytest.mark.parametrize(("version", "code"), [(9, ErrorCode.MEMBER_ID_REQUIRED), (3, ErrorCode.NONE)])
async def test_clients_that_join_and_never_come_back(serve: Serve, version: int, code: ErrorCode) -> None:
    broker = await serve({"group.min.session.timeout.ms": "1", "offsets.topic.num.partitions": "2"})
    count = MOST_IDLE + 500
    requests = [
        join_request(f"g{number}", session_timeout_ms=1, rebalance_timeout_ms=1) for number in range(count)
    ]
    async with await connect(broker) as peer:
        await peer.ask(requests[0], version)  # which makes the topic
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def send() -> None:
                for request in requests[1:]:
                    await peer.send(request, version)

            for number, request in enumerate(requests[1:], 2):
                assert (await peer.answer_to(request, version, number)).error_code == code
    async with await connect(broker) as peer:
        with trio.fail_after(60):
            while len((await peer.ask(ListGroupsRequest(), 5)).groups) > MOST_IDLE:
                pass
        listed = (await peer.ask(ListGroupsRequest(), 5)).groups
        assert {group.group_state for group in listed} == {"Empty"}
        if version == 9:
            assert len(listed) == MOST_IDLE


class _Stands(Clock):
    def now_ms(self) -> int:
        return 1_700_000_000_000

    def monotonic(self) -> float:
        return 0.0


def opened(directory: Path, **settings: str) -> Broker:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return open_broker(Settings({"log.dirs": str(directory), "node.id": "1", **given}), _Stands())


async def test_addresses_that_may_have_no_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each is logged once until one of its connections ends, and here none ends."""
    broker = opened(tmp_path, max_connections_per_ip="0")
    try:
        from leafcuttr.config.listeners import Listener

        connections = Connections(broker)
        listener = Listener("PLAINTEXT", "127.0.0.1", 9092, "localhost", 9092)
        caplog.set_level(logging.WARNING)
        with socket.socket() as unused:
            for number in range(3 * _MOST_REFUSED):
                for _ in range(2):
                    assert connections.add(unused, listener, f"2001:db8::{number:x}", 1) is None
        assert len(connections._refused) <= _MOST_REFUSED
        assert not connections._by_address
        assert len(caplog.records) == 3 * _MOST_REFUSED
    finally:
        broker.logs.close()
        broker.metadata.close()


async def test_filters_made_for_topics_that_could_not_be_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = opened(tmp_path)
    ended: list[str] = []

    def make(topic: str, _: object) -> Instance:
        return Instance(lambda record: record, [lambda: ended.append(topic)])

    try:
        broker.chains.equip(Tables({"keep": make}))

        def full(*_: object) -> None:
            raise StorageError("no space left on device")

        monkeypatch.setattr(broker.topics._logs, "prepare", full)
        for number in range(20):
            with pytest.raises(StorageError):
                await broker.topics.create(f"t{number}", 1, {"lc.filters": "keep"})
        assert len(ended) == 20
        assert not broker.chains._prepared and not broker.chains.tallies
    finally:
        broker.logs.close()
        broker.metadata.close()
