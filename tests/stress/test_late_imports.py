"""What is imported because a connection or a request came, where the process may open no more files: real processes,
whose limit is set while they run. The next connection, or request, is served as if nothing had been."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.find_coordinator import FindCoordinatorRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from support import librdkafka
from support.broker_process import BrokerProcess, running_broker
from support.descriptors import limited
from support.logs import batch
from support.waiting import until
from support.wire_client import WireClient

PROXY = {"lc.http.proxy.enable": "true", "lc.http.proxy.port": "0", "lc.http.proxy.host": "127.0.0.1"}
NO_FILES = "Too many open files"
PAUSES = "listener lc.http.proxy of plugin http: it accepts no connection for a moment"

Address = tuple[str, int]


def admin(broker: BrokerProcess) -> Address:
    return split(broker.about["metrics"])


def proxy(broker: BrokerProcess) -> Address:
    return split(broker.about["plugin_listeners"]["lc.http.proxy"])


def split(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return host, int(port)


@contextmanager
def connected(address: Address) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(*address, timeout=60)
    connection.connect()
    try:
        yield connection
    finally:
        connection.close()


def get(connection: http.client.HTTPConnection, path: str) -> tuple[int, bytes]:
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read()


def ask(address: Address, path: str) -> int | None:
    """The status of an answer on a connection of its own; None if it was closed without one."""
    with connected(address) as connection:
        with suppress(ConnectionError, http.client.RemoteDisconnected):
            return get(connection, path)[0]
        return None


@pytest.mark.one_in(2)
@pytest.mark.parametrize("spare", [1, 2, 3])
def test_the_first_connection_to_the_admin_port(tmp_path: Path, spare: int) -> None:
    with running_broker(tmp_path, PROXY) as broker:
        with limited(broker, spare):
            found = [ask(admin(broker), "/health/live") for _ in range(3)]
            assert found == ([200] * 3 if spare == 3 else [None] * 3)
        assert ask(admin(broker), "/health/live") == 200
        assert ask(admin(broker), "/metrics") == 200
        assert "Traceback" not in broker.log
        assert broker.log.count("the admin endpoint cannot serve") == (spare != 3)


def test_metrics_are_shown_as_long_as_a_log_has_a_file_to_give_up(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker, WireClient(broker.address) as client:
        for number in range(4):
            librdkafka.create(broker.address, f"t{number}")
            assert not client.produce(f"t{number}", batch()).error_code
        with limited(broker, 1):
            assert ask(admin(broker), "/health/live") == 200
            assert ask(admin(broker), "/metrics") == 200
            assert not client.produce("t0", batch()).error_code
        assert "Traceback" not in broker.log


def test_the_first_scrape_on_a_connection_that_is_there(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker, connected(admin(broker)) as connection:
        assert get(connection, "/health/live")[0] == 200
        with limited(broker, 0):
            status, body = get(connection, "/metrics")
            assert (status, NO_FILES in body.decode()) == (503, True)
            assert get(connection, "/metrics")[0] == 503
        status, body = get(connection, "/metrics")
        assert status == 200
        assert b"leafcuttr_" in body
        assert "Traceback" not in broker.log
        assert broker.log.count("answering /metrics failed") == 1


def test_a_full_table_is_one_line_of_the_proxy_and_harms_nobody(tmp_path: Path) -> None:
    with running_broker(tmp_path, PROXY) as broker, ExitStack() as crowd:
        with limited(broker, 4):  # fewer than the connections that the proxy may have by then
            for _ in range(40):
                crowd.enter_context(socket.create_connection(proxy(broker)))
            until(lambda: PAUSES in broker.log, "a pause")
            answered = ask_while_full(broker, crowd)
            assert answered in (None, 200)
            assert broker.alive()
        crowd.close()
        until(lambda: ask(proxy(broker), "/brokers") == 200, "the proxy")
        with connected(admin(broker)) as connection:
            status, page = get(connection, "/metrics")
        assert status == 200
        paused = re.search(r"^leafcuttr_http_accept_pauses_total (\S+)$", page.decode(), re.MULTILINE)
        assert paused is not None and float(paused[1]) >= 1, "each pause is counted, and one is logged"
        assert "Traceback" not in broker.log
        assert broker.log.count(PAUSES) == 1
        assert len(broker.log.splitlines()) < 12, broker.log


def ask_while_full(broker: BrokerProcess, crowd: ExitStack) -> int | None:
    """A connection to the admin port, for which one of the crowd leaves."""
    one = socket.create_connection(proxy(broker))
    with connected(admin(broker)) as connection:
        one.close()
        crowd.pop_all().close()
        with suppress(ConnectionError, http.client.RemoteDisconnected):
            return get(connection, "/health/live")[0]
    return None


def test_the_first_request_to_the_part_of_the_proxy_that_is_imported_late(tmp_path: Path) -> None:
    with running_broker(tmp_path, PROXY) as broker, connected(proxy(broker)) as connection:
        # One that the front itself answers: the connection is there.
        assert get(connection, "/topics/x/stream?from=nonsense")[0] in (404, 422)
        with limited(broker, 0):
            for _ in range(3):
                status, body = get(connection, "/brokers")
                assert (status, NO_FILES in body.decode()) == (503, True)
        assert get(connection, "/brokers")[0] == 200
        assert "Traceback" not in broker.log
        assert broker.log.count("GET /brokers failed") == 1


def test_the_first_request_of_each_kind_to_kafka(tmp_path: Path) -> None:
    """Without a file to give up the connection closes; the next one is answered."""
    with running_broker(tmp_path) as broker:
        with WireClient(broker.address) as client:
            client.ask(MetadataRequest(), 12)  # it is accepted
            with limited(broker, 0), pytest.raises(ConnectionError):
                client.list_offset("nothing", -1)
        with WireClient(broker.address) as client:
            assert client.list_offset("nothing", -1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "Traceback" not in broker.log


def test_the_first_batch_that_has_to_be_compressed(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker, WireClient(broker.address) as client:
        librdkafka.create(broker.address, "zipped", compression_type="gzip")
        librdkafka.create(broker.address, "plain")
        assert not client.produce("plain", batch()).error_code
        with limited(broker, 0):
            code = client.produce("zipped", batch()).error_code
            assert code in (0, ErrorCode.KAFKA_STORAGE_ERROR)
            assert not client.produce("plain", batch()).error_code
        assert not client.produce("zipped", batch()).error_code
        assert "Traceback" not in broker.log


def test_a_commit_that_is_written_later_by_a_task_of_the_broker(tmp_path: Path) -> None:
    settings = {
        "offsets.topic.num.partitions": "1",
        "offsets.topic.compression.codec": "1",
        "group.coordinator.append.linger.ms": "50",
    }
    topic = OffsetCommitRequestTopic(
        name="t", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=0)]
    )
    commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=[topic])

    with running_broker(tmp_path, settings) as broker, WireClient(broker.address) as client:
        librdkafka.create(broker.address, "t")
        # What a commit needs is imported, and the internal topic is there; nothing is written yet.
        client.ask(FindCoordinatorRequest(coordinator_keys=["g"], key_type=0), 4)
        assert (
            client.ask(replace(commit, generation_id_or_member_epoch=5, member_id="nobody"), 8)
            .topics[0]
            .partitions[0]
            .error_code
        )
        with limited(broker, 0):
            code = client.ask(commit, 8).topics[0].partitions[0].error_code
            assert code == ErrorCode.NOT_COORDINATOR
        assert not client.ask(commit, 8).topics[0].partitions[0].error_code
        assert "Traceback" not in broker.log


LIGHTHOUSE = """
import trio
from leafcuttr_sdk import Plugin, ServiceSpec

PLUGIN = Plugin(name="lighthouse", api_version=1, summary="Serves as the documentation says")


def leafcuttr_register_services():
    return [ServiceSpec("lighthouse", lambda broker: Lighthouse())]


class Lighthouse:
    async def run(self, *, task_status):
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        print("lighthouse on", listeners[0].socket.getsockname()[1], flush=True)
        task_status.started()
        await trio.serve_listeners(self.serve, listeners)

    async def serve(self, stream):
        await stream.send_all(b"light")
"""


def test_a_listener_of_a_plugin_that_trio_serves(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "lighthouse.py").write_text(LIGHTHOUSE)
    with running_broker(tmp_path / "broker", {"lc.plugins.path": str(plugins)}) as broker:
        port = int(broker.log.partition("lighthouse on ")[2].split()[0])
        with limited(broker, 0):
            waiting = socket.create_connection(("127.0.0.1", port))
            until(lambda: "a listener of a plugin pauses" in broker.log, "a pause")
        with waiting:
            waiting.settimeout(60)
            assert waiting.recv(5) == b"light"
        assert broker.log.count("a listener of a plugin pauses") == 1
        assert NO_FILES in broker.log
        assert "Traceback" not in broker.log
