"""`Broker.serve` in a real `leafcuttr serve`: its settings, TLS that is read again, and what is left for clients of
Kafka when descriptors are few."""

from __future__ import annotations

import json
import resource
import select
import socket
import ssl
import stat
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from support import librdkafka
from support.broker_process import BrokerProcess, running_broker, start_broker
from support.waiting import until

PREFIX = "lc.plugin.echo"
ECHO = """
from leafcuttr_sdk import Plugin, ServiceSpec, serving_settings

PLUGIN = Plugin("echo", 1, "Sends back what it gets.")
PREFIX = "lc.plugin.echo"


def leafcuttr_register_settings():
    return serving_settings(PREFIX, 0, "127.0.0.1")


def leafcuttr_register_services():
    return [ServiceSpec("echo", Echo)]


class Echo:
    def __init__(self, broker):
        self.broker = broker

    async def run(self, *, task_status):
        await self.broker.serve(PREFIX, self.echo, task_status=task_status)

    async def echo(self, stream):
        async for data in stream:
            if data == b"fail":
                raise ValueError("told to")
            if data == b"interrupt":
                raise KeyboardInterrupt
            await stream.send_all(data)
"""


@pytest.fixture
def echo(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "echo.py").write_text(ECHO)
    return {"lc.plugins.path": str(folder)}


def ready(broker: BrokerProcess) -> dict[str, str]:
    found: dict[str, str] = json.loads((broker.folder / "ready.json").read_text())["plugin_listeners"]
    return found


def health(broker: BrokerProcess) -> dict[str, object]:
    admin = json.loads((broker.folder / "ready.json").read_text())["metrics"]
    with urllib.request.urlopen(f"http://{admin}/health", timeout=60) as answer:
        found: dict[str, object] = json.load(answer)
        return found


def metrics(broker: BrokerProcess) -> list[str]:
    with urllib.request.urlopen(f"http://{broker.about['metrics']}/metrics", timeout=60) as answer:
        return answer.read().decode().splitlines()  # type: ignore[no-any-return]


def connect(broker: BrokerProcess) -> socket.socket:
    host, _, port = ready(broker)[PREFIX].rpartition(":")
    return socket.create_connection((host, int(port)), 60)


def echoed(sock: socket.socket, data: bytes = b"hello") -> bool:
    sock.sendall(data)
    got = b""
    while len(got) < len(data) and (more := sock.recv(100)):
        got += more
    return got == data


def test_one_connection_that_does_badly_harms_no_other(tmp_path: Path, echo: dict[str, str]) -> None:
    with running_broker(tmp_path, echo) as broker:
        with connect(broker) as other:
            for _ in range(3):
                with connect(broker) as client:
                    client.sendall(b"fail")
                    assert client.recv(10) == b""
            with connect(broker) as client:
                client.sendall(b"interrupt")
                assert client.recv(10) == b""
            assert echoed(other)
        assert health(broker)["status"] == "ok"
        log = broker.log
    one, other_one = [line for line in log.splitlines() if "handler of lc.plugin.echo failed" in line]
    assert "ERROR plugin echo: handler of lc.plugin.echo failed: ValueError: told to (" in one
    assert one.endswith("echo.py, line 26)")
    assert "ERROR plugin echo: handler of lc.plugin.echo failed: KeyboardInterrupt (" in other_one
    assert "Traceback" not in broker.log


def test_a_stop_ends_connections_and_takes_no_more(tmp_path: Path, echo: dict[str, str]) -> None:
    broker = start_broker(tmp_path, echo)
    with connect(broker) as client:
        assert echoed(client)
        assert broker.stop() == 0
        assert client.recv(10) == b""
    assert "left behind" not in broker.log


def test_a_unix_socket_alone(tmp_path: Path, echo: dict[str, str]) -> None:
    path = tmp_path / "echo.sock"
    settings = {
        **echo,
        f"{PREFIX}.port": "-1",
        f"{PREFIX}.unix.path": str(path),
        f"{PREFIX}.unix.mode": "0600",
    }
    with running_broker(tmp_path, settings) as broker:
        assert ready(broker) == {f"{PREFIX}.unix": str(path)}
        until(lambda: f"lc.plugin.echo.unix://{path}" in broker.log, "the line of the log")
        assert health(broker)["plugin_listeners"] == {f"{PREFIX}.unix": f"PLAINTEXT://{path}"}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            assert echoed(client)
    assert not path.exists()


def test_a_port_and_a_unix_socket(tmp_path: Path, echo: dict[str, str]) -> None:
    path = tmp_path / "echo.sock"
    with (
        running_broker(tmp_path, {**echo, f"{PREFIX}.unix.path": str(path)}) as broker,
        connect(broker) as client,
        socket.socket(socket.AF_UNIX) as local,
    ):
        local.connect(str(path))
        assert echoed(client) and echoed(local)


def test_a_listener_that_is_not_opened(tmp_path: Path, echo: dict[str, str]) -> None:
    with running_broker(tmp_path, {**echo, f"{PREFIX}.port": "-1"}) as broker:
        assert ready(broker) == {}
        assert health(broker)["status"] == "ok"
        assert "failed" not in broker.log


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("unix.path", "/none/echo.sock", "unix.path=/none/echo.sock: No such file or directory"),
        ("unix.mode", "0999", "unix.mode=0999 (-o): allowed are permissions in octal, as 0660"),
        ("port", "-2", "port=-2 (-o): allowed is a whole number from -1 to 65535"),
    ],
)
def test_what_is_wrong_stops_the_start_with_one_line(
    tmp_path: Path, echo: dict[str, str], name: str, value: str, said: str
) -> None:
    with pytest.raises(RuntimeError, match="ended with status") as ended:
        start_broker(tmp_path, {**echo, f"{PREFIX}.{name}": value})
    lines = str(ended.value).partition(": ")[2].strip().splitlines()
    assert len(lines) == 1 and f"{PREFIX}.{said}" in lines[0].replace("KAFKA_", "")


def subject(broker: BrokerProcess, client: ssl.SSLContext) -> str:
    with connect(broker) as sock, client.wrap_socket(sock, server_hostname="localhost") as wrapped:
        found = dict(pair[0] for pair in wrapped.getpeercert()["subject"])  # type: ignore[index, misc, union-attr]
        assert echoed(wrapped)
        return str(found["commonName"])


@pytest.mark.parametrize("every_ms", [20, 0])
def test_a_certificate_that_was_replaced_is_used(tmp_path: Path, echo: dict[str, str], every_ms: int) -> None:
    ca, file = trustme.CA(), tmp_path / "key.pem"

    def write(name: str) -> None:
        pem = ca.issue_cert("localhost", common_name=name).private_key_and_cert_chain_pem
        pem.write_to_path(tmp_path / "new.pem")
        (tmp_path / "new.pem").replace(file)

    write("first")
    client = ssl.create_default_context()
    ca.configure_trust(client)
    settings = {
        **echo,
        f"{PREFIX}.ssl.keystore.location": str(file),
        "lc.tls.reload.interval.ms": str(every_ms),
    }
    with running_broker(tmp_path, settings) as broker:
        assert subject(broker, client) == "first"
        write("second")
        if every_ms:
            until(lambda: subject(broker, client) == "second", "the new certificate")
            file.write_text("no longer")
            until(lambda: "the certificate that was read before stays in use" in broker.log, "the refusal")
            assert subject(broker, client) == "second"
        else:
            assert subject(broker, client) == "first"


@pytest.mark.alone
def test_clients_are_served_beside_700_connections_of_a_plugin(tmp_path: Path, echo: dict[str, str]) -> None:
    """With `ulimit -n 400`, of which by default a fifth is for plugins."""
    with ExitStack() as crowd:
        # The hard limit too: a broker raises its own.
        broker = crowd.enter_context(running_broker(tmp_path, echo, before=("prlimit", "--nofile=400:400")))
        clients = [crowd.enter_context(connect(broker)) for _ in range(700)]
        values = [b"%d" % number for number in range(20)]
        stored = librdkafka.send(broker.address, "orders", values, timestamp=1_700_000_000_000)
        assert stored == list(range(20))
        assert health(broker)["status"] == "ok"
        records = librdkafka.read(broker.address, "orders", 20)
        assert [each.value() for each in records] == values
        open_ones = [sock for sock in clients if not select.select([sock], [], [], 0)[0]]
        assert len(open_ones) == 80
        assert echoed(open_ones[0]) and echoed(open_ones[-1])
        (line,) = [line for line in broker.log.splitlines() if "a connection was refused" in line]
        assert "80 are open (lc.plugin.echo.max.connections)" in line
        for sock in open_ones[:10]:
            sock.close()

        def taken() -> bool:
            with connect(broker) as sock:
                try:
                    return echoed(sock)
                except OSError:
                    return False

        until(taken, "a place")


def test_the_number_that_is_set_is_kept(tmp_path: Path, echo: dict[str, str]) -> None:
    with (
        running_broker(tmp_path, {**echo, f"{PREFIX}.max.connections": "2"}) as broker,
        connect(broker) as one,
        connect(broker) as two,
        connect(broker) as three,
    ):
        assert echoed(one) and echoed(two)
        assert three.recv(10) == b""
        of_echo = f'listener="{PREFIX}",plugin="echo"}}'
        page = metrics(broker)
        for line in (
            f"leafcuttr_plugin_connections{{{of_echo} 2.0",
            f"leafcuttr_plugin_connections_accepted_total{{{of_echo} 2.0",
            f"leafcuttr_plugin_connections_refused_total{{{of_echo} 1.0",
            f'leafcuttr_plugin_connections_ended_total{{end="closed",{of_echo} 0.0',
            f"leafcuttr_plugin_accept_pauses_total{{{of_echo} 0.0",
        ):
            assert line in page, [each for each in page if "plugin_connections" in each]


def idle_kb(tmp_path: Path, settings: dict[str, str], count: int, tls: ssl.SSLContext | None = None) -> float:
    """Resident memory of the broker for each of `count` idle connections, in KB."""
    with running_broker(tmp_path, settings) as broker, ExitStack() as crowd:

        def grow(more: int) -> float:
            for _ in range(more):
                sock = crowd.enter_context(connect(broker))
                if tls is not None:
                    sock = crowd.enter_context(tls.wrap_socket(sock, server_hostname="localhost"))
                assert echoed(sock)
            return broker.resident_mb()

        first = grow(200)
        return (grow(count) - first) * 1000 / count


@pytest.mark.alone
@pytest.mark.parametrize("count", [1_000, pytest.param(9_700, marks=pytest.mark.long)])
def test_what_an_idle_connection_costs(tmp_path: Path, echo: dict[str, str], count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * (count + 200):
        pytest.skip(f"it needs {2 * (count + 200)} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        each_kb = idle_kb(tmp_path, {**echo, f"{PREFIX}.max.connections": "10000"}, count)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(f"{each_kb:.2f} KB for each of {count} idle connections")
    assert each_kb <= 6


@pytest.mark.alone
@pytest.mark.long
def test_what_an_idle_connection_costs_with_tls(tmp_path: Path, echo: dict[str, str]) -> None:
    """The figure that docs/how-to/plugin-ports.md states."""
    ca = trustme.CA()
    ca.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(tmp_path / "key.pem")
    client = ssl.create_default_context()
    ca.configure_trust(client)
    settings = {**echo, f"{PREFIX}.ssl.keystore.location": str(tmp_path / "key.pem")}
    each_kb = idle_kb(tmp_path, settings, 1_000, client)
    print(f"{each_kb:.2f} KB for each of 1000 idle connections with TLS")
    assert each_kb <= 35
