"""The HTTP address of a command that runs flows: its paths, and what hostile clients do to it."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio

from leafcuttr_forward.flows.report import FlowReport, FlowState, PartitionReport
from leafcuttr_forward.people.current import RunningFlows
from leafcuttr_forward.people.endpoint import FlowsEndpoint
from leafcuttr_forward.people.exposition import OtherMetric
from leafcuttr_forward.people.metrics import flow_readings
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.types import TopicPartition

NOW = 1_000_000
ODD = 'a "topic"\\'


def report(name: str = "relay-edge") -> FlowReport:
    made = FlowReport(name, FlowState.RUNNING, source="edge:9092", target="hub:9092", exactly_once=True)
    made.partitions[TopicPartition("orders", 0)] = PartitionReport(
        "copy",
        target_partition=0,
        position=7,
        end=10,
        timestamp=NOW - 2500,
        target_offset=9,
        read_records=8,
        written_records=7,
        written_bytes=700,
        dropped_records=1,
        dead_letters=2,
        lost_records=4,
        written_to={TopicPartition("copy", 0): 7, TopicPartition("dead", 3): 1},
    )
    made.partitions[TopicPartition("orders", 1)] = PartitionReport("copy")
    made.events["truncated"] = 2
    made.restarts, made.switches, made.transactions, made.buffered_bytes = 3, 5, 6, 7000
    return made


def endpoint(*reports: FlowReport) -> FlowsEndpoint:
    running = RunningFlows({each.name: each for each in reports})
    others = [OtherMetric("kafka_relay_msg_count", "Records.", ("source",), [((ODD,), 3.0)])]
    return FlowsEndpoint(
        running,
        flow_readings(running.all, lambda: NOW),
        lambda: others,
        now_ms=lambda: NOW,
        status=lambda: {"target": "hub"},
    )


def body(made: FlowsEndpoint, path: str, status: int = 200) -> str:
    answer = made.respond("GET", path)
    assert answer.status == status
    assert isinstance(answer.body, bytes)
    return answer.body.decode()


def test_flows_and_one_flow() -> None:
    made = endpoint(report())
    (row,) = json.loads(body(made, "/plugins/forward/flows"))
    assert row == {
        "flow": "relay-edge",
        "state": "running",
        "source": "edge:9092",
        "target": "hub:9092",
        "guarantee": "exactly once",
        "partitions": 2,
        "read": 8,
        "written": 7,
        "dropped": 1,
        "dead_letters": 2,
        "lost": 4,
        "lag_records": 3,
        "lag_seconds": 2.5,
        "trouble": None,
    }
    found = json.loads(body(made, "/plugins/forward/flows/relay%2Dedge"))
    first, second = found["topics"]
    assert (first["position"], first["end"], first["target_offset"]) == (7, 10, 9)
    assert (first["target_partition"], first["target_partitions"]) == (0, [0])
    assert (second["target_partition"], second["target_partitions"]) == (None, [])
    assert (first["lag_records"], first["lag_seconds"], first["written_bytes"]) == (3, 2.5, 700)
    assert (second["position"], second["end"], second["lag_records"]) == (None, None, 0)
    assert found["events"] == {"truncated": 2}
    assert json.loads(body(made, "/plugins/forward/flows/none", 404))["error"] == "no_such_flow"


def test_the_overview_has_what_the_run_says() -> None:
    found = json.loads(body(endpoint(report()), "/"))
    assert (found["target"], found["flows"][0]["flow"]) == ("hub", "relay-edge")


def test_health() -> None:
    well, ill = report("a"), report("b")
    assert json.loads(body(endpoint(well), "/health")) == {"status": "ok", "detail": "1 flow"}
    ill.trouble = "no broker answers"
    assert json.loads(body(endpoint(well, ill), "/health", 503)) == {
        "status": "degraded",
        "detail": "b: no broker answers",
    }
    well.notes["guarantee"] = "the target has no transactions: at least once"
    assert "a: the target has no transactions" in body(endpoint(well), "/health")
    many = [report(str(number)) for number in range(5)]
    for each in many:
        each.partitions[TopicPartition("orders", 1)].trouble = "it is gone"
    assert "; 2 more" in body(endpoint(*many), "/health", 503)


def test_metrics_as_text() -> None:
    lines = body(endpoint(report()), "/metrics").splitlines()
    for line in (
        'leafcuttr_forward_read_records_total{flow="relay-edge",partition="0",topic="orders"} 8.0',
        'leafcuttr_forward_written_records_total{flow="relay-edge",partition="0",topic="orders"} 7.0',
        'leafcuttr_forward_written_bytes_total{flow="relay-edge",partition="0",topic="orders"} 700.0',
        'leafcuttr_forward_dropped_records_total{flow="relay-edge",partition="0",topic="orders"} 1.0',
        'leafcuttr_forward_lag_records{flow="relay-edge",partition="0",topic="orders"} 3.0',
        'leafcuttr_forward_lag_seconds{flow="relay-edge",partition="0",topic="orders"} 2.5',
        'leafcuttr_forward_dead_letters_total{flow="relay-edge",partition="0",topic="orders"} 2.0',
        'leafcuttr_forward_lost_records_total{flow="relay-edge",partition="0",topic="orders"} 4.0',
        'leafcuttr_forward_restarts_total{flow="relay-edge"} 3.0',
        'leafcuttr_forward_switches_total{flow="relay-edge"} 5.0',
        'leafcuttr_forward_transactions_total{flow="relay-edge"} 6.0',
        'leafcuttr_forward_buffered_bytes{flow="relay-edge"} 7000.0',
        'leafcuttr_forward_up{flow="relay-edge"} 1.0',
        'leafcuttr_forward_state{flow="relay-edge",state="running"} 1.0',
        'leafcuttr_forward_state{flow="relay-edge",state="paused"} 0.0',
        'leafcuttr_forward_source_changes_total{change="truncated",flow="relay-edge"} 2.0',
        "# TYPE leafcuttr_forward_read_records_total counter",
        "# TYPE kafka_relay_msg_count untyped",
        'kafka_relay_msg_count{source="a \\"topic\\"\\\\"} 3.0',
    ):
        assert line in lines


@pytest.mark.parametrize("path", ["/none", "/plugins/forward", "/metrics/", "//", "/%00"])
def test_other_paths(path: str) -> None:
    assert json.loads(body(endpoint(), path, 404))["error"] == "not_found"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_it_changes_nothing(method: str) -> None:
    assert endpoint(report()).respond(method, "/plugins/forward/flows/relay-edge").status == 405


# Over TCP


@asynccontextmanager
async def served() -> AsyncGenerator[int]:
    async with trio.open_nursery() as nursery:
        ((_, port),) = await nursery.start(endpoint(report()).serve, "127.0.0.1", 0)
        yield port
        nursery.cancel_scope.cancel()


async def exchange(port: int, sent: bytes) -> bytes:
    """All that comes until the end."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    with trio.fail_after(30):
        await stream.send_all(sent)
        await stream.send_eof()
        found = b""
        while data := await stream.receive_some(65536):
            found += data
    return found


async def test_requests_over_one_connection() -> None:
    async with served() as port:
        found = await exchange(
            port, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
        )
    first, _, second = found.partition(b'{"status":"ok","detail":"1 flow"}')
    assert first.startswith(b"HTTP/1.1 200 OK\r\n")
    assert second.startswith(b"HTTP/1.1 200 OK\r\n")
    assert second.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", b"413"),
        (b"POST / HTTP/1.1\r\nHost: a\r\n\r\n", b"405"),
        (b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", b"413"),
    ],
)
async def test_what_is_refused(sent: bytes, status: bytes) -> None:
    async with served() as port:
        found = await exchange(port, sent)
        assert found.split(b" ")[1] == status
        assert b"HTTP/1.1 200 OK" in await exchange(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")


async def test_a_client_that_resets_ends_its_own_connection_only() -> None:
    async with served() as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        stream.socket.close()
        assert b"200 OK" in await exchange(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")


async def test_more_connections_than_allowed_are_closed() -> None:
    async with served() as port, trio.open_nursery() as nursery:
        open_ones = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(64)]
        with trio.fail_after(30):
            await open_ones[-1].send_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"200 OK" in await open_ones[-1].receive_some()
            one_more = await trio.open_tcp_stream("127.0.0.1", port)
            assert await one_more.receive_some() == b""
            await open_ones[0].aclose()
            while True:
                again = await trio.open_tcp_stream("127.0.0.1", port)
                await again.send_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                if await again.receive_some():
                    break
        nursery.cancel_scope.cancel()


async def test_silence_ends_a_connection(autojump_clock: trio.testing.MockClock) -> None:
    async with served() as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(b"GET / HTTP/1.1\r\n")
        assert await stream.receive_some() == b""


async def test_an_address_that_is_taken_is_a_line() -> None:
    async with served() as port:
        with pytest.raises(PluginError, match=f"metrics cannot be served at 127.0.0.1:{port}: "):
            await endpoint().serve("127.0.0.1", port)
