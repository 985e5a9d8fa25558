"""How far groups are behind, in records and in seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from leafcuttr.state.broker import Broker
from leafcuttr_sdk.metrics import OTHER
from support.logs import NOW, batch
from support.peer import connect, metadata_request, produce_request
from support.scraper import Scraper, commit

Serve = Callable[..., Awaitable[Broker]]


async def test_lag_in_records_and_seconds(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = await serve()
    scraper = Scraper(broker)
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
        for number in range(5):
            old = batch(10, timestamp=NOW + number * 60_000)
            assert (
                not (await peer.ask(produce_request("t", old), 9))
                .responses[0]
                .partition_responses[0]
                .error_code
            )
    await commit(broker, "g", "t", 0, 10)
    await commit(broker, "h", "t", 0, 50)
    monkeypatch.setattr(type(broker.clock), "now_ms", lambda _: NOW + 10 * 60_000)
    values = await scraper.values()
    assert values["kafka_consumergroup_current_offset", "g", "0", "t"] == 10
    assert values["kafka_consumergroup_lag", "g", "0", "t"] == 40
    assert values["kafka_consumergroup_lag_seconds", "g", "0", "t"] == 9 * 60
    assert values["kafka_consumergroup_lag", "h", "0", "t"] == 0
    assert values["kafka_consumergroup_lag_seconds", "h", "0", "t"] == 0
    assert values["kafka_coordinator_group_groupmetadatamanager_numgroups", "Empty"] == 2
    assert values["kafka_coordinator_group_groupmetadatamanager_numoffsets",] == 2
    await commit(broker, "g", "t", 0, 45)  # in the middle of the last batch
    log = broker.topics.by_name["t"].partitions[0].log
    assert (await scraper.values())["kafka_consumergroup_lag_seconds", "g", "0", "t"] == 6 * 60
    log.delete_records_before(50)
    await commit(broker, "h", "t", 0, 20)  # what it had not read is gone
    values = await scraper.values()
    assert values["kafka_consumergroup_lag", "h", "0", "t"] == 30
    assert ("kafka_consumergroup_lag_seconds", "h", "0", "t") not in values


async def test_what_a_group_has_not_read_is_looked_up_once(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leafcuttr.log.segment.segment import Segment

    broker = await serve()
    scraper = Scraper(broker)
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
        await peer.ask(produce_request("t", batch(10)), 9)
    await commit(broker, "g", "t", 0, 3)
    looks, find = [0], Segment.find

    def counted(*arguments: Any, **named: Any) -> Any:
        looks[0] += 1
        return find(*arguments, **named)

    monkeypatch.setattr(Segment, "find", counted)
    for _ in range(3):
        assert ("kafka_consumergroup_lag_seconds", "g", "0", "t") in await scraper.values()
    assert looks == [1]


@pytest.mark.setting("lc.metrics.max.group.partitions")
async def test_groups_beyond_the_bound_and_with_impossible_names_are_summed(serve: Serve) -> None:
    broker = await serve({"lc.metrics.max.group.partitions": "2"})
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
        await peer.ask(produce_request("t", batch(10)), 9)
    for group in (OTHER, "x" * 250, 'quo"te\n', "b", "c"):
        await commit(broker, group, "t", 0, 4)
    values = await Scraper(broker).values()
    lags = {key[1]: value for key, value in values.items() if key[0] == "kafka_consumergroup_lag"}
    assert lags == {'quo"te\n': 6, "b": 6, OTHER: 18}
    assert values["leafcuttr_metrics_unnamed_groups",] == 3
    assert values["kafka_coordinator_group_groupmetadatamanager_numgroups", "Empty"] == 5
