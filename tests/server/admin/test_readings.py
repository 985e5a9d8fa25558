"""What a scrape says, against what was done; its formats; its bounds; that it does not hold the loop.

One module, though longer than most: the themes share the broker and the reading of an exposition.
"""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
import trio
import trustme
from prometheus_client.parser import text_string_to_metric_families as parse_text
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr import __version__
from leafcuttr.errors import ErrorCode
from leafcuttr.metrics.catalog import METRICS
from leafcuttr.net.live_certificates import LiveCertificates
from leafcuttr.net.tls_files import TlsFiles
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.events import Join
from leafcuttr.state.security.quota_entities import entity_of
from leafcuttr.state.transactions.machine import BUMPS_EPOCHS
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.metrics import Kind
from support.http_client import ON
from support.logs import batch
from support.peer import connect, fetch_request, metadata_request, produce_request
from support.scraper import Scraper, Values, commit, values_of
from support.waiting import eventually
from support.wire_client import WireClient

Serve = Callable[..., Awaitable[Broker]]


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


async def test_time_left_of_certificates(serve: Serve, tmp_path: Path) -> None:
    """Of those that are shown now, of plugins' listeners too."""
    broker = await serve({"lc.tls.reload.interval.ms": "0"})
    authority, file = trustme.CA(), tmp_path / "key.pem"

    def issue(name: str, days: int) -> None:
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
        found = authority.issue_cert("a", common_name=name, organization_unit_name="u", not_after=end)
        found.private_key_and_cert_chain_pem.write_to_path(file)

    issue("one", 10)
    certificates = broker.certificates["lc.acme"] = LiveCertificates(TlsFiles("lc.acme", str(file)))
    subject = certificates.chain[0].subject_text

    async def left() -> dict[str, float]:
        values = await Scraper(broker).values()
        found = {
            key: value for key, value in values.items() if key[0] == "leafcuttr_certificate_remaining_seconds"
        }
        assert all(key[1] == "lc.acme" for key in found)
        return {str(key[2]): value for key, value in found.items()}

    begun = broker.clock.now_ms() / 1000
    assert await left() == {subject: pytest.approx(certificates.chain[0].not_after - begun, abs=600)}
    issue("two", 20)
    assert certificates.look()
    assert list(await left()) == [subject.replace("CN=one", "CN=two")]


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
        await eventually(lambda: not transactions.loading, "the transactions to be loaded")
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


async def test_log_ins(serve: Serve) -> None:
    """First and later ones, that succeed and fail, and what comes after the end of a session."""
    jaas = 'M.PlainLoginModule required user_alice="a";'
    broker = await serve(
        {
            "listeners": "IN://127.0.0.1:0,OPEN://127.0.0.1:0",
            "listener.security.protocol.map": "IN:SASL_PLAINTEXT,OPEN:PLAINTEXT",
            "inter.broker.listener.name": "OPEN",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.in.plain.sasl.jaas.config": jaas,
            "connection.failed.authentication.delay.ms": "0",
            "connections.max.reauth.ms": "100",
            **ON,
        }
    )
    address = f"127.0.0.1:{broker.listeners[0].port}"

    def log_in(client: WireClient, password: str) -> int:
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        message = f"\0alice\0{password}".encode()
        return int(client.ask(SaslAuthenticateRequest(auth_bytes=message), 2).error_code)

    def clients() -> Values:
        with WireClient(address) as refused, WireClient(address) as client, WireClient(address) as late:
            assert log_in(refused, "wrong")
            for _ in range(3):
                assert log_in(client, "a") == 0
            assert log_in(client, "wrong")
            assert log_in(late, "a") == 0
            with pytest.raises(ConnectionError):
                while True:
                    late.ask(MetadataRequest(topics=[]), 12)
        assert broker.admin is not None
        with urlopen(f"http://127.0.0.1:{broker.admin.port}/metrics") as answer:
            return values_of(answer.read().decode())

    values = await trio.to_thread.run_sync(clients)
    prefix = "kafka_server_socketservermetrics_"
    wanted = {
        f"{prefix}successful_authentication_total": 2,
        f"{prefix}failed_authentication_total": 1,
        f"{prefix}successful_reauthentication_total": 2,
        f"{prefix}failed_reauthentication_total": 1,
        "leafcuttr_expired_sessions_total": 1,
    }
    assert {name: values[name, "IN"] for name in wanted} == wanted
    assert {values[name, "OPEN"] for name in wanted} == {0}


async def test_what_quotas_hold_back(serve: Serve, mock_clock: MockClock) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {})
    await broker.quotas.alter(
        {
            entity_of({"user": None}): {"producer_byte_rate": 1000.0},
            entity_of({"ip": None}): {"connection_creation_rate": 1.0},
        }
    )
    async with await connect(broker) as peer, await connect(broker):
        wait_ms = (await peer.ask(produce_request("t", batch(1, size=5000)), 9)).throttle_time_ms
        await wait_all_tasks_blocked(0.01)
        values = await Scraper(broker).values()
    assert values["leafcuttr_throttled_connections",] == 1
    assert values["leafcuttr_held_connections",] == 1
    assert values["leafcuttr_throttle_seconds_count", "producer_byte_rate"] == 1
    said_s = values["leafcuttr_throttle_seconds_sum", "producer_byte_rate"]
    assert said_s == pytest.approx(wait_ms / 1000, abs=0.001)
