"""Topics beyond the bound share a name in the metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from leafcuttr.state.broker import Broker
from leafcuttr_sdk.metrics import OTHER
from support.logs import batch
from support.peer import connect, metadata_request, produce_request
from support.scraper import Scraper

Serve = Callable[..., Awaitable[Broker]]


@pytest.mark.setting("lc.metrics.max.partitions")
async def test_topics_beyond_the_bound_are_summed(serve: Serve) -> None:
    broker = await serve({"lc.metrics.max.partitions": "3", "num.partitions": "2"})
    scraper = Scraper(broker)
    async with await connect(broker) as peer:
        for name in ("a", "b", "c"):
            await peer.ask(metadata_request(name), 12)
            await peer.ask(produce_request(name, batch(1)), 9)
        size = len(batch(1))
        name = "kafka_server_brokertopicmetrics_messagesin_total"
        values = await scraper.values()
        assert {key[1]: value for key, value in values.items() if key[0] == name} == {"a": 1, OTHER: 2}
        assert values["kafka_log_log_size", OTHER, OTHER] == 2 * size
        assert values["leafcuttr_metrics_unnamed_partitions",] == 4
        assert [key for key in values if key[0] == "kafka_log_log_logendoffset"] == [
            ("kafka_log_log_logendoffset", "0", "a"),
            ("kafka_log_log_logendoffset", "1", "a"),
        ]
        # A sum never falls: neither when one of the others goes, nor because a name becomes free.
        await broker.topics.delete("b")
        await broker.topics.delete("a")
        await peer.ask(produce_request("c", batch(1)), 9)
        await peer.ask(metadata_request("d"), 12)
        values = await scraper.values()
        assert {key[1]: value for key, value in values.items() if key[0] == name} == {"d": 0, OTHER: 3}


async def test_a_topic_that_grows_beyond_the_bound_keeps_its_name(serve: Serve) -> None:
    broker = await serve({"lc.metrics.max.partitions": "3", "num.partitions": "2"})
    scraper = Scraper(broker)
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("a"), 12)
    await scraper.values()
    await broker.topics.add_partitions("a", 5)
    values = await scraper.values()
    shown = [key[1] for key in values if key[0] == "kafka_log_log_logendoffset"]
    assert shown == ["0", "1", "2"]
    assert values["leafcuttr_metrics_unnamed_partitions",] == 2
    assert values["kafka_controller_kafkacontroller_globalpartitioncount",] == 5
