"""Scrapes of the metrics of a broker in this process, without a socket, and what is done to it before."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families as parse_text

from leafcuttr.server.admin.endpoint import AdminEndpoint
from leafcuttr.server.admin.router import Request
from leafcuttr.server.listener import Connections
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from support.waiting import eventually

Values = dict[tuple[Any, ...], float]


class Scraper:
    """Scrapes one broker of this process, without sockets."""

    def __init__(self, broker: Broker) -> None:
        self.connections = Connections(broker)
        self.admin = AdminEndpoint(broker, self.connections)

    async def text(
        self, accept: str = "", encoding: str = "", names: tuple[str, ...] = ()
    ) -> tuple[bytes, str]:
        headers = {"accept": accept, "accept-encoding": encoding}
        answer = await self.admin.router.answer(Request("GET", "/metrics", {"name[]": list(names)}, headers))
        assert not isinstance(answer.body, bytes)
        return b"".join([piece async for piece in answer.body]), answer.content_type

    async def values(self) -> Values:
        """Every series by name and the values of its labels, in the order of the labels' names."""
        text, _ = await self.text()
        return values_of(text.decode())


def values_of(text: str) -> Values:
    """The same of what a broker has answered."""
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in parse_text(text)
        for sample in family.samples
    }


async def commit(broker: Broker, group: str, topic: str, partition: int, offset: int) -> None:
    await broker.groups.ready()
    await eventually(lambda: not broker.groups.loading, "the groups to be loaded")
    new = NewOffset(topic, broker.topics.by_name[topic].id, partition, offset, -1, "")
    done = broker.groups.offsets.commit(group, Committer(), [new])
    if not isinstance(done, list):
        done = await done
    assert not any(done)
