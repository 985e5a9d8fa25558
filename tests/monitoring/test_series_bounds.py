"""Whatever clients send, metrics keep to a number of series and to labels that can be shown: every metric of a real
broker and its HTTP proxy, after peers that choose all that a peer can choose."""

from __future__ import annotations

import logging
import sys
from collections import defaultdict
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from leafcuttr.errors import ErrorCode
from leafcuttr.log.append.chain.chain import Tally
from leafcuttr.metrics.added import AddedMetrics
from leafcuttr.metrics.catalog import METRICS
from leafcuttr.metrics.reference import LABELS
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.plugins.serving.ends import ConnectionEnd
from leafcuttr.server.throttle import ConnectionThrottle, Stopwatch
from leafcuttr.state.broker import Broker
from leafcuttr.state.chains import FILTERS, VALIDATORS
from leafcuttr.state.groups.states import GroupState
from leafcuttr.state.security.quota_entities import OF_ADDRESSES, OF_CLIENTS, entity_of
from leafcuttr.state.transactions.states import TransactionState
from leafcuttr.wire.api import APIS
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest
from leafcuttr.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from leafcuttr.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from leafcuttr_sdk import Plugin
from leafcuttr_sdk.metrics import LONGEST_LABEL, MOST_SAMPLES, MOST_SERIES, OTHER, MetricReading, gauge
from support.http_proxy import Running, running
from support.logs import batch
from support.tls_peer import Certificates
from support.wire_client import WireClient

MOST = 8
"""Partitions, and partitions of groups, that are named."""
ROUND = 30
"""Values of each kind that a round of the clients makes up."""
LONG = "x" * 12_000

NUMBER = frozenset(map(str, range(MOST)))
CLOSED: dict[str, Collection[str]] = {
    "request": frozenset(api.name for api in APIS.values()),
    "error": frozenset(code.name for code in ErrorCode),
    "listener": {"PLAINTEXT", "SSL", "lc.http.proxy"},
    "end": {each.label for each in ConnectionEnd} | {"closed"},
    "outcome": {"commit", "abort"},
    "state": {each.value for each in GroupState}
    | {each.title for each in TransactionState}
    | {"enabled", "off", "disabled", "unavailable", "failed"},
    "partition": NUMBER | {OTHER},
    "generation": {"0", "1", "2"},
    "service": {"http"},
    "child": {"sleeper"},
    "plugin": {"filters", "forward", "http", "mqtt", "registry", "spark"},
    "verdict": {"kept", "changed", "dropped", "dead_letter", "accepted", "refused"},
    # Of the HTTP proxy
    "endpoint": {"produce", "stream", "topics", "consumers", "brokers", "openapi", "other"},
    "method": {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "other"},
    "status": frozenset(map(str, (200, 204, 400, 404, 405, 406, 408, 413, 415, 422, 500, 503))),
    "format": {"json", "v2 json", "binary", "lines"},
    "kind": {"sse", "websocket"},
    "quota": frozenset((*OF_CLIENTS, *OF_ADDRESSES)),
}
"""All that these labels can be."""
COUNTED = {
    "topic": MOST + 1,
    "subject": 1,
    "consumergroup": MOST + 1,
    "version": 2,
    "python": 1,
    "check": 20,
    "filter": 1,
    "validator": 1,
}
"""How many values these can have here."""


@pytest.mark.long
async def test_what_clients_choose_becomes_no_series_without_bound(tmp_path: Path) -> None:
    bounds = {"lc.metrics.max.partitions": MOST, "lc.metrics.max.group.partitions": MOST}
    settings: dict[str, str | int] = {
        **bounds,
        "auto.create.topics.enable": "true",
        "num.partitions": 1,
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "ssl.keystore.location": Certificates(tmp_path).issue("localhost").file,
    }
    async with running(tmp_path / "data", broker=settings) as proxy, child_of_a_plugin(proxy):
        await hostile_round(proxy, 0)
        first = await series(proxy)
        assert_bounded(first)
        await hostile_round(proxy, 1)
        last = await series(proxy)
        assert_bounded(last)
        assert {name: len(found) for name, found in last.items()} == {
            name: len(found) for name, found in first.items()
        }, "another round of made-up values makes no series"
        known = {metric.name for metric in METRICS.values()} | {
            reading.metric.name for _, reading in proxy.core.plugged.metrics.readings()
        }
        shown = {name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum") for name in last}
        for log in proxy.core.logs.logs.values():
            log.offline = "the disk is gone"
        offline = await series(proxy)
        assert_bounded(offline)
        assert len(offline["leafcuttr_partition_offline"]) == MOST
        shown.add("leafcuttr_partition_offline")
        assert known - shown == set(), "every metric was tried with hostile values"


def test_every_label_is_on_the_page_and_has_a_bound() -> None:
    of_core = {label for metric in METRICS.values() for label in metric.labels}
    assert of_core == LABELS.keys()
    assert of_core <= CLOSED.keys() | COUNTED.keys()


def child_of_a_plugin(proxy: Running) -> AbstractAsyncContextManager[object]:
    """Its names are the plugin's, so clients choose none."""
    view = make_broker_view(proxy.core, Plugin("http", 1, "has a program here"))
    return view.child("sleeper", [sys.executable, "-c", "import time; time.sleep(600)"])


async def series(proxy: Running) -> dict[str, list[dict[str, str]]]:
    """The labels of all series by the name of the sample."""
    import httpx

    async with httpx.AsyncClient(timeout=60) as client:
        page = (await client.get(f"http://{proxy.broker.metrics_address}/metrics")).text
    found = defaultdict(list)
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            found[sample.name].append(sample.labels)
    return found


def assert_bounded(found: dict[str, list[dict[str, str]]]) -> None:
    values: dict[str, set[str]] = defaultdict(set)
    for name, each in found.items():
        for labels in each:
            for label, value in labels.items():
                assert len(value) <= LONGEST_LABEL, (name, label)
                if label in CLOSED:
                    assert value in CLOSED[label], (name, label)
                elif label != "le":
                    values[name, label].add(value)  # type: ignore[index]
    for (name, label), some in values.items():  # type: ignore[misc]
        assert len(some) <= COUNTED[label], (name, label)
    assert sum(map(len, found.values())) < 2000


async def hostile_round(proxy: Running, number: int) -> None:
    made_up = [f"{number}-{each}" for each in range(ROUND)]
    await trio.to_thread.run_sync(over_kafka, proxy.broker.listeners["PLAINTEXT"], made_up)
    async with proxy.client() as client:
        assert (await client.post("/topics/good", json={"records": [{"value": 1}]})).status_code == 200
        for text in made_up:
            made = await client.post(f"/consumers/{text}", json={"name": text})
            assert made.status_code == 200, made.text
        with trio.fail_after(60):
            async with client.stream("GET", "/topics/good/stream?from=earliest") as answer:
                async for line in answer.aiter_lines():
                    if line.startswith("data:"):
                        break
    as_by_plugins(proxy.core, made_up)
    await held_back(proxy.core, made_up)
    for port in (proxy.port, int(str(proxy.broker.metrics_address).rpartition(":")[2])):
        for text in [*made_up, LONG]:
            await over_http(port, text.replace("-", ""))


def as_by_plugins(core: Broker, made_up: list[str]) -> None:
    """What the filters and validators of topics that clients have named leave behind; none of the plugins here has
    any."""
    for topic in [*core.topics.by_name, *made_up, LONG]:
        for setting in (FILTERS, VALIDATORS):
            core.chains.tallies[topic, setting, "judge"] = Tally()
        core.dead_letters.written[topic] = core.dead_letters.lost[topic] = 1


async def held_back(core: Broker, made_up: list[str]) -> None:
    """Clients that are above quotas of names that they have made up."""
    names = [*made_up, LONG]
    await core.quotas.alter(
        {entity_of({"client-id": text, "user": text}): {"producer_byte_rate": 1.0} for text in names}
    )
    for text in names:
        limits = core.quotas.limits_of(text, text)
        assert limits is not None
        client = ConnectionThrottle(limits, Stopwatch(), core.counts)
        client.staged(100)
        assert client.charge([])[1] > 0


def over_kafka(address: str, made_up: list[str]) -> None:
    """Every request and everything in one that a client may call as it likes."""
    with WireClient(address) as client:
        for text in made_up:
            for name in (f"topic{text}", f"topic{text}".ljust(249, "y"), "../x", LONG, "\n"):
                client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 8)
                with suppress(ConnectionError):
                    client.produce(name, batch())
            for group in (f"group{text}", f"group{text}" + "z" * 300, "\x00\n\"'\\", OTHER, ""):
                client.ask(join(group, text), 4)
                client.ask(commit(group, f"topic{text}"), 8)
            client.ask(InitProducerIdRequest(transactional_id=f"id{text}", transaction_timeout_ms=1000), 4)
            client.ask(
                ApiVersionsRequest(client_software_name=f"s{text}", client_software_version=f"v{text}"), 3
            )
            topic = CreatableTopic(name="..", num_partitions=-7, replication_factor=9)
            client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
    for key, version in [(int(text.partition("-")[2]) * 7, 99) for text in made_up]:
        with WireClient(address) as client:
            client.socket.sendall(
                (20).to_bytes(4, "big") + key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(16)
            )


def join(group: str, text: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type=f"type{text}",
        protocols=[JoinGroupRequestProtocol(name=f"protocol{text}", metadata=b"")],
    )


def commit(group: str, topic: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )


async def over_http(port: int, text: str) -> None:
    """Each request on a connection of its own: some of them end it."""
    for start, headers in (
        (f"M{text} /topics HTTP/1.1", ""),
        (f"M{text} /topics/t/stream HTTP/1.1", ""),
        (f"GET /{text}?name[]={text} HTTP/1.1", f"Accept: {text}/{text}\r\n"),
        (f"GET /topics/{text} HTTP/1.1", f"Origin: http://{text}\r\n"),
        (f"GET /topics/{text}/stream HTTP/1.1", f"Accept: a/{text}\r\n"),
        (f"GET /metrics?name[]={text} HTTP/1.1", f"Host: {text}\r\n"),
        ("POST /topics/t HTTP/1.1", f"Content-Type: application/{text}\r\nContent-Length: 0\r\n"),
        (f"POST /consumers/{text} HTTP/1.1", f"Content-Type: {text}\r\nContent-Length: 0\r\n"),
        (f"OPTIONS /{text} HTTP/1.1", f"Access-Control-Request-Method: {text}\r\nOrigin: {text}\r\n"),
    ):
        host = "" if headers.startswith("Host") else "Host: x\r\n"
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            with suppress(trio.BrokenResourceError), trio.fail_after(60):
                await stream.send_all(f"{start}\r\n{host}{headers}Connection: close\r\n\r\n".encode())
                async for _ in stream:
                    pass


def test_what_a_plugin_counts_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    table = AddedMetrics()
    metrics = table.of("x")
    count = metrics.counter("leafcuttr_x_things_total", "Things.", "of", "by")
    level = metrics.gauge("leafcuttr_x_level", "Level.", "of")
    with caplog.at_level(logging.WARNING):
        for number in range(2 * MOST_SERIES):
            count.add(2, f"name{number}", "all")
            level.set(number, f"name{number}")
        count.add(1, LONG, "all")
        count.add(1, "half \ud800 a pair", "all")
        level.set(1, LONG)
        count.add(3, "name0", "all")
        level.set(7, "name0")
    counted, levels = (dict(reading.read()) for _, reading in table.readings())
    assert len(counted) == MOST_SERIES
    assert len(levels) == MOST_SERIES - 1
    assert counted["name0", "all"] == 5
    assert counted[OTHER, OTHER] == 2 * (MOST_SERIES + 1) + 2
    assert sum(counted.values()) == 4 * MOST_SERIES + 5
    assert levels["name0",] == 7
    assert [record.getMessage().partition(" has ")[0] for record in caplog.records] == [
        "leafcuttr_x_things_total",
        "leafcuttr_x_level",
    ]


def test_a_label_that_cannot_be_encoded_is_shown_all_the_same() -> None:
    table = AddedMetrics()
    table.of("x").counter("leafcuttr_x_things_total", "Things.", "of").add(1, "half \ud800 a pair")
    assert [list(reading.read()) for _, reading in table.readings()] == [[(("half ? a pair",), 1)]]


async def test_readings_of_plugins_are_bounded(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as proxy:
        added: Any = proxy.core.plugged.metrics
        many = gauge("leafcuttr_http_many", "Many.", "of")
        odd = gauge("leafcuttr_http_odd", "Odd.", "of")
        added.add("http", MetricReading(many, lambda: (((str(n),), n) for n in range(2 * MOST_SAMPLES))))
        added.add("http", MetricReading(odd, lambda: [((LONG,), 1), (("\ud800",), 2), (("plain",), 3)]))
        found = await series(proxy)
        assert len(found["leafcuttr_http_many"]) == MOST_SAMPLES
        assert found["leafcuttr_http_odd"] == [{"of": "?"}, {"of": "plain"}]
