"""The contract of peers, kept by a cluster over the network."""

from __future__ import annotations

import logging

import trio

from leafcuttr.client.peer import open_remote_peer
from leafcuttr.runtime.clock import SystemClock
from leafcuttr_sdk.testing.peer_checks import peer_report
from support import librdkafka


async def keeps_contract(address: str, *promises: str) -> None:
    """Raises AssertionError with what is wrong."""

    async def delete(topic: str) -> None:
        await trio.to_thread.run_sync(librdkafka.delete, address, topic)

    properties = {"bootstrap.servers": address}
    logger, clock = logging.getLogger("tests.client"), SystemClock()
    async with (
        open_remote_peer(properties, clock=clock, logger=logger) as peer,
        open_remote_peer(properties, clock=clock, logger=logger) as second,
    ):
        report = await peer_report(peer, second=second, delete_topic=delete, only=frozenset(promises))
    assert {each.name for each in report.checks} == set(promises)
    report.raise_problems()
