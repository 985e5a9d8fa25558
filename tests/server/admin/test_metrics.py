"""What a scrape says, against what was done; its formats; its bounds; that it does not hold the loop.

One module, though longer than most: the themes share the broker and the reading of an exposition.
"""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from leafcuttr import __version__
from leafcuttr.errors import ErrorCode
from leafcuttr.metrics import catalog
from leafcuttr.metrics.catalog import METRICS
from leafcuttr.server.admin.endpoint import AdminEndpoint
from leafcuttr.server.admin.router import Request
from leafcuttr.server.listener import Connections
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.groups.events import Join
from leafcuttr.state.transactions.machine import BUMPS_EPOCHS
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.metrics import OTHER, Kind, counter, gauge, info
from support.logs import NOW, batch
from support.peer import connect, fetch_request, metadata_request, produce_request

Serve = Callable[..., Awaitable[Broker]]
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
        return {
            (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
            for family in parse_text(text.decode())
            for sample in family.samples
        }


async def commit(broker: Broker, group: str, topic: str, partition: int, offset: int) -> None:
    await broker.groups.ready()
    with trio.fail_after(60):
        while broker.groups.loading:
            await trio.sleep(0.001)
    new = NewOffset(topic, broker.topics.by_name[topic].id, partition, offset, -1, "")
    done = broker.groups.offsets.commit(group, Committer(), [new])
    if not isinstance(done, list):
        done = await done
    assert not any(done)


async def test_every_declared_metric_and_no_other(serve: Serve) -> None:
    text, _ = await Scraper(await serve()).text()
    families = {family.name: family for family in parse_text(text.decode())}
    assert list(families) == [
        metric.family if metric.kind is Kind.COUNTER else metric.name for metric in METRICS.values()
    ]
    for metric in METRICS.values():
        family = families[metric.family if metric.kind is Kind.COUNTER else metric.name]
        assert family.documentation == metric.help
        assert family.type == ("gauge" if metric.kind is Kind.INFO else metric.kind.value)
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels)


async def test_traffic_offsets_and_sizes(serve: Serve) -> None:
    broker = await serve({"num.partitions": "2"})
    scraper = Scraper(broker)
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t", "u"), 12)
        for _ in range(6):
            await peer.ask(produce_request("t", batch(5), partition=1), 9)
        await peer.ask(fetch_request("t", 10, partition=1), 11)
        await peer.ask(fetch_request("nowhere", 0), 11)
    size = len(batch(5))
    values = await scraper.values()
    expected = {
        ("kafka_server_brokertopicmetrics_messagesin_total", "t"): 30,
        ("kafka_server_brokertopicmetrics_messagesin_total", "u"): 0,
        ("kafka_server_brokertopicmetrics_bytesin_total", "t"): 6 * size,
        ("kafka_server_brokertopicmetrics_messagesout_total", "t"): 20,
        ("kafka_server_brokertopicmetrics_bytesout_total", "t"): 4 * size,
        ("kafka_log_log_size", "0", "t"): 0,
        ("kafka_log_log_size", "1", "t"): 6 * size,
        ("kafka_log_log_logstartoffset", "1", "t"): 0,
        ("kafka_log_log_logendoffset", "1", "t"): 30,
        ("kafka_log_log_numlogsegments", "1", "t"): 1,
        ("kafka_controller_kafkacontroller_globaltopiccount",): 2,
        ("kafka_controller_kafkacontroller_globalpartitioncount",): 4,
        ("kafka_controller_kafkacontroller_offlinepartitionscount",): 0,
        ("kafka_network_requestmetrics_requests_total", "Produce"): 6,
        ("kafka_network_requestmetrics_totaltime_seconds_count", "Produce"): 6,
        ("kafka_network_requestmetrics_totaltime_seconds_bucket", "+Inf", "Fetch"): 2,
        ("kafka_network_requestmetrics_errors_total", "UNKNOWN_TOPIC_OR_PARTITION", "Fetch"): 1,
        ("leafcuttr_build_info", values_python(values), __version__): 1,
    }
    assert {key: values.get(key) for key in expected} == expected


def values_python(values: Values) -> str:
    return next(str(key[1]) for key in values if key[0] == "leafcuttr_build_info")


async def test_offline_partitions(serve: Serve) -> None:
    broker = await serve()
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
    broker.topics.by_name["t"].partitions[0].log.take_offline("tried out")
    values = await Scraper(broker).values()
    assert values["leafcuttr_partition_offline", "0", "t"] == 1
    assert values["kafka_controller_kafkacontroller_offlinepartitionscount",] == 1
    assert values["leafcuttr_health_check", "partitions"] == 0
    assert values["leafcuttr_health_check", "serving"] == 1


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


async def test_groups_members_and_rebalances(serve: Serve) -> None:
    broker = await serve({"group.initial.rebalance.delay.ms": "0"})
    scraper = Scraper(broker)
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
    await commit(broker, "other", "t", 0, 0)  # the coordinator is there now
    joined = broker.groups.join(
        "g",
        Join(
            member_id="",
            instance_id=None,
            client_id="c",
            client_host="/",
            protocol_type="consumer",
            protocols=(("range", b""),),
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            two_steps=False,
        ),
    )
    await joined.wait()
    values = await scraper.values()
    assert values["kafka_consumergroup_members", "g"] == 1
    assert values["kafka_coordinator_group_groupmetadatamanager_numgroups", "CompletingRebalance"] == 1
    assert values["leafcuttr_group_rebalances_total",] == 1


async def test_transactions_by_state_and_outcome(serve: Serve) -> None:
    broker = await serve()
    transactions = broker.transactions
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
    for name, commits in (("a", True), ("b", False), ("c", None)):
        await transactions.ready()
        with trio.fail_after(60):
            while transactions.loading:
                await trio.sleep(0.001)
        begun = await transactions.init(name, 60_000, None)
        added = transactions.add(name, begun.producer_id, begun.epoch, [TopicPartition("t", 0)], BUMPS_EPOCHS)
        assert not (added if isinstance(added, ErrorCode) else await added)
        if commits is not None:
            ended = await transactions.end(
                name, begun.producer_id, begun.epoch, commit=commits, version=BUMPS_EPOCHS
            )
            assert not ended.error
    values = await Scraper(broker).values()
    assert values["leafcuttr_transactions_ended_total", "commit"] == 1
    assert values["leafcuttr_transactions_ended_total", "abort"] == 1
    assert values["leafcuttr_transactions", "Ongoing"] == 1
    states = [value for key, value in values.items() if key[0] == "leafcuttr_transactions"]
    assert sum(states) == 3


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


async def test_text_and_openmetrics_say_the_same(serve: Serve) -> None:
    broker = await serve()
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
    scraper = Scraper(broker)
    text, kind = await scraper.text()
    assert kind.startswith("text/plain; version=")
    assert b"# EOF" not in text
    accept = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75"
    open_text, open_kind = await scraper.text(accept)
    assert open_kind.startswith("application/openmetrics-text; version=")
    assert open_text.endswith(b"\n# EOF\n") and open_text.count(b"# EOF") == 1
    names = {sample.name for family in parse_text(text.decode()) for sample in family.samples}
    opened = {sample.name for family in parse_openmetrics(open_text.decode()) for sample in family.samples}
    assert names == opened


async def test_gzip_where_it_is_taken(serve: Serve) -> None:
    scraper = Scraper(await serve())
    plain, _ = await scraper.text(encoding="deflate, gzip;q=0")
    assert plain.startswith(b"# HELP")
    squeezed, _ = await scraper.text(encoding="br, gzip")
    assert gzip.decompress(squeezed).startswith(b"# HELP")


async def test_single_metrics_may_be_asked_for(serve: Serve) -> None:
    scraper = Scraper(await serve())
    text, _ = await scraper.text(names=("leafcuttr_loop_delay_seconds_bucket", "kafka_log_log_size"))
    assert [family.name for family in parse_text(text.decode())] == [
        "kafka_log_log_size",
        "leafcuttr_loop_delay_seconds",
    ]


async def test_a_long_family_has_one_header(serve: Serve) -> None:
    broker = await serve({"num.partitions": "250"})
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
    text, _ = await Scraper(broker).text()
    lines = text.decode().splitlines()
    for metric in METRICS.values():
        assert (
            lines.count(f"# TYPE {metric.name} {'gauge' if metric.kind is Kind.INFO else metric.kind.value}")
            == 1
        )
    assert sum(line.startswith("kafka_log_log_size{") for line in lines) == 250


async def test_others_have_their_turn_during_a_scrape(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """With turns of no length the loop goes round after every step: every hundred samples of a family."""
    broker = await serve({"num.partitions": "1000"})
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
    scraper = Scraper(broker)
    await scraper.text()
    monkeypatch.setattr("leafcuttr.runtime.pacing.TURN_S", 0.0)
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            await trio.lowlevel.checkpoint()
            rounds += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await scraper.text()
        nursery.cancel_scope.cancel()
    assert rounds > 6 * 1000 / 100


def test_names_that_say_something_else() -> None:
    for make, name in ((gauge, "things_total"), (counter, "things"), (info, "things"), (gauge, "Things")):
        with pytest.raises(ValueError, match="is no name for a"):
            make(name, "Things.")
    with pytest.raises(ValueError, match="no sentence"):
        gauge("things", "Things")


def test_the_catalog_is_declared_once() -> None:
    assert len(METRICS) == sum(len(table) for _, table in catalog.THEMES)


async def test_the_loop_delay_is_sampled(serve: Serve) -> None:
    import time

    broker = await serve()
    with trio.fail_after(60):
        while not broker.counts.loop_delay.count:
            await trio.sleep(0.01)
        before = broker.counts.loop_delay.seconds
        while broker.counts.loop_delay.seconds < before + 0.2:
            time.sleep(0.3)  # what a plugin should never do
            await trio.sleep(0.01)


async def test_recovery_and_the_state_of_the_stop_before(serve: Serve, tmp_path: Path) -> None:
    stop, ended = trio.Event(), trio.Event()
    broker = await serve(stop=stop, ended=ended)
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
        await peer.ask(produce_request("t", batch(10)), 9)
    stop.set()
    await ended.wait()
    (tmp_path / "data" / ".kafka_cleanshutdown").unlink()
    (tmp_path / "data" / "leafcuttr.partitions").unlink()
    values = await Scraper(await serve()).values()
    assert values["leafcuttr_clean_start",] == 0
    assert values["leafcuttr_recovered_partitions",] == 1
    assert values["leafcuttr_recovered_bytes",] == len(batch(10))
    assert values["kafka_log_log_logendoffset", "0", "t"] == 10
