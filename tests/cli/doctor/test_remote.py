"""`leafcuttr doctor HOST:PORT`: every finding is seen in the real situation, a server or a broker that is so.

How full the disk of this machine is, is none of these tests' business. Longer than most, as the table of checks is:
a finding, a test.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import trustme

from leafcuttr.cli.doctor import command as package
from leafcuttr.cli.doctor.findings import DoctorCheck, DoctorFinding, DoctorSeverity, examine
from leafcuttr.cli.doctor.remote.checks import CHECKS
from leafcuttr.cli.doctor.remote.identify import usual
from leafcuttr.cli.doctor.remote.remote_broker import RemoteBroker
from leafcuttr.cli.reference import walk
from support import librdkafka
from support.broker_process import BrokerProcess, clean_environ, running_broker
from support.forked_start import run_leafcuttr
from support.listening import closed_port, http_server, listening, relay, speaks_only
from support.loop_disk import loop_disk
from support.namespace import run_behind
from support.waiting import free_port
from support.wall_clock import WallClock
from support.wire_client import WireClient

PATIENCE_S = 60.0  # for what is there
IMPATIENCE_S = 2.0  # for what is not


def look(
    address: str,
    *,
    timeout: float = PATIENCE_S,
    patience: float = PATIENCE_S,
    writes: bool = False,
    checks: Sequence[DoctorCheck[RemoteBroker]] = CHECKS,
    **properties: str,
) -> dict[str, list[DoctorFinding]]:
    """The findings by check; properties with _ for the dot."""
    host, _, port = address.rpartition(":")
    given = {name.replace("_", "."): value for name, value in properties.items()}
    found: dict[str, list[DoctorFinding]] = {}
    for one in examine(checks, RemoteBroker(host, int(port), timeout, patience, given, writes)):
        found.setdefault(one.check, []).append(one.finding)
    return found


def only_problem(found: Mapping[str, list[DoctorFinding]]) -> tuple[str, DoctorFinding]:
    """The one problem that there is, and its check; the checks that build on that one are skipped."""
    problems = [
        (name, one)
        for name, findings in found.items()
        for one in findings
        if one.severity is DoctorSeverity.PROBLEM and name != "disk"
    ]
    assert len(problems) == 1, problems
    name, one = problems[0]
    assert one.why
    assert one.change
    needing = [check.name for check in CHECKS if name in check.needs]
    assert all(found[other][0].severity is DoctorSeverity.SKIPPED for other in needing)
    return name, one


def severities(found: Mapping[str, list[DoctorFinding]]) -> dict[str, set[str]]:
    return {
        name: {one.severity.value for one in findings} for name, findings in found.items() if name != "disk"
    }


def topics(address: str) -> list[str]:
    """Their names. The first consumer of all makes the broker's own."""
    found = librdkafka.admin(address).list_topics(timeout=PATIENCE_S).topics
    return sorted(name for name in found if not name.startswith("__"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("doctor")) as broker:
        librdkafka.create(broker.address, "orders")
        yield broker


def test_a_healthy_broker(broker: BrokerProcess) -> None:
    found = look(broker.address, writes=True)
    assert severities(found) == {check.name: {"fine"} for check in CHECKS if check.name != "disk"}
    assert "the disk of" in found["disk"][0].seen
    assert "read back unchanged" in found["round-trip"][0].seen
    assert topics(broker.address) == ["orders"], "the doctor has left something behind"


def test_without_write_nothing_is_written(broker: BrokerProcess) -> None:
    with WireClient(broker.address) as client:
        before = client.list_offset("orders", -1).offset
        found = look(broker.address)
        assert found["round-trip"][0].severity is DoctorSeverity.SKIPPED
        assert client.list_offset("orders", -1).offset == before
    assert topics(broker.address) == ["orders"]


def test_an_unknown_name() -> None:
    name, one = only_problem(look("no-such-host.invalid:9092"))
    assert name == "name"
    assert "no-such-host.invalid cannot be resolved on this machine" in one.seen


def test_a_closed_port() -> None:
    name, one = only_problem(look(f"127.0.0.1:{(port := closed_port())}"))
    assert name == "port"
    assert one.seen == f"no connection to 127.0.0.1:{port}: Connection refused"
    assert f"or let it listen here: listeners=PLAINTEXT://127.0.0.1:{port}" in one.change


def test_a_port_whose_packets_are_dropped() -> None:
    """The kernel drops them for a server that does not accept and whose queue is full, as a firewall would."""
    with socket.socket() as server, contextlib.ExitStack() as knocking:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            sock = knocking.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(server.getsockname())
        name, one = only_problem(look(f"127.0.0.1:{server.getsockname()[1]}", timeout=IMPATIENCE_S))
    assert name == "port"
    assert "no answer in time" in one.seen
    assert "firewall" in one.why


def test_a_name_with_two_addresses_of_which_one_is_closed(broker: BrokerProcess, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 twice\n127.0.0.3 twice\n")
    # In a Python of its own: that the name has two addresses holds behind that mount only.
    out = run_behind(
        [["--bind", str(hosts), "/etc/hosts"]],
        [sys.executable, "-m", "leafcuttr", "doctor", f"twice:{broker.port}", "--json"],
        clean_environ(),
    )
    found = [one for one in json.loads(out)["examined"][0]["findings"] if one["check"] == "port"]
    assert [one["severity"] for one in found] == ["warning"]
    assert "open at 127.0.0.1 and not at 127.0.0.3" in found[0]["seen"]
    assert found[0]["change"][0].endswith(f"127.0.0.1:{broker.port}")


def test_an_http_server() -> None:
    with http_server() as port:
        name, one = only_problem(look(f"127.0.0.1:{port}", timeout=IMPATIENCE_S))
    assert name == "protocol"
    assert "not Kafka but an HTTP server" in one.seen


def test_usual_ports_are_named() -> None:
    assert usual(8081) == " (port 8081 is the port of a schema registry)"
    assert usual(9092) == ""


def test_a_server_that_greets() -> None:
    def greet(sock: socket.socket) -> None:
        sock.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        sock.recv(1)

    with listening(greet) as port:
        name, one = only_problem(look(f"127.0.0.1:{port}"))
    assert name == "protocol"
    assert 'something that says "SSH-2.0-OpenSSH_9.2"' in one.seen


def test_a_server_that_says_nothing() -> None:
    def wait(sock: socket.socket) -> None:
        while sock.recv(1000):
            pass

    with listening(wait) as port:
        name, one = only_problem(look(f"127.0.0.1:{port}", timeout=IMPATIENCE_S, patience=IMPATIENCE_S))
    assert name == "protocol"
    assert f"does not answer in {IMPATIENCE_S:g} s" in one.seen


def test_a_server_that_hangs_up() -> None:
    with listening(lambda sock: None) as port:
        name, one = only_problem(look(f"127.0.0.1:{port}"))
    assert name == "protocol"
    assert "closes it without an answer" in one.seen


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def server_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return str(tmp_path / "ca.pem")


def test_an_https_server(server_tls: ssl.SSLContext) -> None:
    with http_server(server_tls) as port:
        name, one = only_problem(look(f"127.0.0.1:{port}", timeout=IMPATIENCE_S, patience=2))
    assert name == "protocol"
    assert "a TLS server without a Kafka behind it" in one.seen


def test_a_kafka_behind_tls(tmp_path: Path, server_tls: ssl.SSLContext, ca_file: str) -> None:
    """Without TLS, with TLS but a server's certificate, with everything right."""
    where: list[str] = []
    with (
        relay(lambda: where[0], server_tls) as port,
        running_broker(
            tmp_path / "broker", {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
        ) as broker,
    ):
        where.append(broker.address)
        address = f"127.0.0.1:{port}"
        name, one = only_problem(look(address, timeout=IMPATIENCE_S))
        assert name == "protocol"
        assert "is a Kafka that speaks TLS, and the client connected without TLS" in one.seen
        assert one.change[0].startswith("-X security.protocol=SSL")
        name, one = only_problem(look(address, security_protocol="SSL"))
        assert name == "protocol"
        assert "the certificate of" in one.seen
        assert "-X ssl.ca.location" in one.change[0]
        found = look(address, security_protocol="SSL", ssl_ca_location=ca_file)
        assert severities(found)["advertised"] == {"fine"}
        assert severities(found)["client"] == {"fine"}
        assert "problem" not in set().union(*severities(found).values())


def test_a_certificate_that_does_not_name_the_advertised_host(
    tmp_path: Path, authority: trustme.CA, ca_file: str
) -> None:
    """Clients get in by a name that it has, and are sent to one that it has not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    where: list[str] = []
    with (
        relay(lambda: where[0], context) as port,
        running_broker(tmp_path, {"advertised.listeners": f"PLAINTEXT://localhost:{port}"}) as broker,
    ):
        where.append(broker.address)
        # librdkafka would be patient with a broker that it cannot connect to.
        others = [check for check in CHECKS if check.name != "client"]
        address = f"127.0.0.1:{port}"
        found = look(address, checks=others, security_protocol="SSL", ssl_ca_location=ca_file)
    one = found["advertised"][0]
    assert one.severity is DoctorSeverity.PROBLEM
    assert f"localhost:{port}, and the certificate there is refused" in one.seen
    assert one.change[0] == "have a certificate made that names the advertised host"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("days", "names", "warnings"),
    [
        (365, ("127.0.0.1",), []),
        (5, ("127.0.0.1",), [r"the certificate of .* expires in 5 days"]),
        (-5, ("127.0.0.1",), [r"the certificate of .* has expired"]),
        (365, ("kafka.test",), [r"the certificate is not for 127\.0\.0\.1; its names are kafka\.test"]),
    ],
)
def test_the_certificate_of_a_broker(
    tmp_path: Path, days: int, names: tuple[str, ...], warnings: list[str]
) -> None:
    """Also where this client is told not to check it."""
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days, hours=1)
    file = tmp_path / "key.pem"
    trustme.CA().issue_cert(*names, not_after=end).private_key_and_cert_chain_pem.write_to_path(file)
    port = free_port()
    settings = {"listeners": f"SSL://127.0.0.1:{port}", "ssl.keystore.location": str(file)}
    unchecked = {"security_protocol": "SSL", "enable_ssl_certificate_verification": "false"}
    with running_broker(tmp_path / "broker", settings):
        found = look(f"127.0.0.1:{port}", **unchecked)["certificate"]
    if not warnings:
        (one,) = found
        assert one.severity is DoctorSeverity.FINE and one.seen.endswith(", for 365 days")
    said = [one.seen for one in found if one.severity is DoctorSeverity.WARNING]
    assert len(said) == len(warnings)
    assert all(re.fullmatch(pattern, line) for pattern, line in zip(warnings, said, strict=True))


def test_tls_where_there_is_none(broker: BrokerProcess) -> None:
    name, one = only_problem(look(broker.address, security_protocol="SSL"))
    assert name == "protocol"
    assert "speaks no TLS that suits" in one.seen


# What Kafka 0.10.2 and a Kafka of the future say of themselves.
OLD = {0: (0, 2), 1: (0, 3), 2: (0, 1), 3: (0, 2), 8: (0, 2), 9: (0, 2), 10: (0, 0)}
OLD |= dict.fromkeys((11, 12, 13, 14, 18), (0, 1))
NEW = dict.fromkeys((0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14), (90, 99)) | {18: (0, 4)}


@pytest.mark.parametrize(
    ("versions", "seen", "change"),
    [
        (OLD, "Produce 0-2, needed 3", "upgrade the broker to Kafka 2.1"),
        (NEW, "Fetch 90-99, known up to 18", "upgrade the clients"),
    ],
)
def test_no_version_in_common(versions: dict[int, tuple[int, int]], seen: str, change: str) -> None:
    with listening(speaks_only(versions)) as port:
        one = look(f"127.0.0.1:{port}")["versions"][0]
    assert one.severity is DoctorSeverity.PROBLEM
    assert seen in one.seen
    assert one.change[0].startswith(change)


def test_a_listener_that_wants_a_log_in() -> None:
    """It names its versions to everybody and hangs up at the first other request, as Kafka's SASL listeners do."""
    with listening(speaks_only(dict.fromkeys(range(40), (0, 99)))) as port:
        name, one = only_problem(look(f"127.0.0.1:{port}"))
    assert name == "log-in"
    assert "security.protocol=SASL_PLAINTEXT" in one.change[0]


def test_a_client_setting_that_does_not_exist(broker: BrokerProcess) -> None:
    found = look(broker.address, no_such_setting="1")
    name, one = only_problem(found)
    assert name == "client"
    assert "no.such.setting" in one.seen


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("advertised", "seen"),
    [
        ("no-such-host.invalid:9092", "no-such-host.invalid:9092, a name that this machine cannot resolve"),
        ("127.0.0.1:{closed}", "cannot be reached from this machine: Connection refused"),
        ("127.0.0.1:{http}", "where another server than Kafka answers"),
        ("{other}", "where another cluster answers"),
    ],
)
def test_a_wrong_advertised_address(
    tmp_path: Path, broker: BrokerProcess, advertised: str, seen: str
) -> None:
    def hello(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with listening(hello) as http:
        shown = advertised.format(closed=closed_port(), http=http, other=broker.address)
        settings = {"advertised.listeners": f"PLAINTEXT://{shown}"}
        with running_broker(tmp_path, settings) as wrong:
            found = look(wrong.address)
    one = found["advertised"][0]
    assert one.severity is DoctorSeverity.PROBLEM
    assert one.seen.startswith(f"broker 1 advertises {shown}")
    assert seen in one.seen
    assert one.change[0].startswith(f"advertised.listeners=PLAINTEXT://{wrong.address}")
    assert found["round-trip"][0].severity is DoctorSeverity.SKIPPED


def own_address() -> str:
    """Of this machine, not the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            address = str(probe.getsockname()[0])
        except OSError:
            pytest.skip("this machine has no address but its loopback")
    if address.startswith("127."):
        pytest.skip("this machine has no address but its loopback")
    return address


def test_a_broker_that_sends_others_to_their_own_machine(tmp_path: Path) -> None:
    """The classic: reached through a published port or NAT, it says `localhost`. Also open to everybody."""
    own, port = own_address(), closed_port()
    settings = {
        "listeners": f"PLAINTEXT://0.0.0.0:{port}",
        "advertised.listeners": f"PLAINTEXT://localhost:{port}",
    }
    with running_broker(tmp_path, settings):
        found = look(f"{own}:{port}")
    one = found["advertised"][0]
    assert one.severity is DoctorSeverity.PROBLEM
    assert (
        f"localhost:{port}, which is each client's own machine, and was reached as {own}:{port}" in one.seen
    )
    assert one.change[0].startswith(f"advertised.listeners=PLAINTEXT://{own}:{port}")
    assert f"KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{own}:{port}  (a container)" in one.change
    access = found["access"][0]
    assert access.severity is DoctorSeverity.WARNING
    assert "without authentication" in access.seen


def test_an_offline_partition(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        for topic in ("bad", "good"):
            librdkafka.create(broker.address, topic)
            librdkafka.send(broker.address, topic, [b"x" * 1000] * 100, timestamp=0)
    log = broker.data / "bad-0" / f"{0:020d}.log"
    os.truncate(log, log.stat().st_size // 2)
    with running_broker(tmp_path) as broker:
        until = time.monotonic() + PATIENCE_S
        # A clean stop is trusted at first; it is checked within the first second.
        while (one := look(broker.address)["leaders"][0]).severity is DoctorSeverity.FINE:
            assert time.monotonic() < until
    assert one.severity is DoctorSeverity.PROBLEM
    assert one.seen == "1 partition is offline: bad-0"


def test_a_disk_that_is_nearly_full_and_one_that_takes_nothing(tmp_path: Path) -> None:
    with loop_disk(tmp_path) as disk:
        settings = {"log.dirs": str(disk.folder / "data"), "lc.log.min.free.bytes": "0"}
        with running_broker(tmp_path / "broker", settings) as broker:
            first = look(broker.address)["disk"][0]
            volume = os.statvfs(disk.folder)
            free = volume.f_bavail * volume.f_frsize
            with (disk.folder / "filler").open("wb") as filler:
                os.posix_fallocate(filler.fileno(), 0, free - (5 << 20))
            full = look(broker.address)["disk"][0]
            disk.read_only()
            name, refused = only_problem(look(broker.address, writes=True))
            broker.stop()
    assert first.severity is DoctorSeverity.FINE
    assert full.severity is DoctorSeverity.PROBLEM
    assert f"broker 1: the disk of {disk.folder}/data is 9" in full.seen
    assert name == "round-trip"
    assert "no topic could be created" in refused.seen


def test_a_broker_that_takes_no_record(tmp_path: Path) -> None:
    """Its disk has less free space than it keeps for itself."""
    with running_broker(tmp_path, {"lc.log.min.free.bytes": str(1 << 60)}) as broker:
        name, one = only_problem(look(broker.address, writes=True, timeout=8))
    assert name == "round-trip"
    assert "a record was not acknowledged" in one.seen


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("ahead", "severity"), [(300, "warning"), (-300, "warning"), (7200, "problem")])
def test_clocks_that_differ(tmp_path: Path, ahead: int, severity: str) -> None:
    clock = WallClock(tmp_path)
    clock.ahead(ahead)
    with running_broker(tmp_path / "broker", environ=clock.environ) as broker:
        found = look(broker.address, writes=True)
    for one in (found["clock"][0], found["round-trip"][-1]):  # by its word, and by the time of a record
        assert one.severity.value == severity
        assert ("ahead of" if ahead > 0 else "behind") in one.seen
        assert "timedatectl set-ntp true" in one.change[0]


def doctor(*words: str) -> subprocess.CompletedProcess[str]:
    done = run_leafcuttr(("doctor", *words), environ=clean_environ())
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.long
def test_the_command(broker: BrokerProcess) -> None:
    """What people and programs see, and how it ends."""
    well = doctor(broker.address, "--json")
    told: dict[str, Any] = json.loads(well.stdout)
    assert [one["subject"] for one in told["examined"]] == [broker.address]
    findings = told["examined"][0]["findings"]
    assert {one["check"] for one in findings} == {check.name for check in CHECKS}
    others = [one for one in findings if one["check"] != "disk"]
    assert {one["severity"] for one in others} == {"fine", "skipped"}
    assert told["healthy"] == (well.returncode == 0)

    port = closed_port()
    ill = doctor(f"localhost:{port}")
    assert ill.returncode == 1
    assert f"  problem  port         no connection to localhost:{port}: Connection refused\n" in ill.stdout
    assert "why  The machine is there" in ill.stdout
    assert "change  start the broker: leafcuttr serve\n" in ill.stdout
    assert ill.stdout.endswith("1 problem\n")
    assert json.loads(doctor(f"localhost:{port}", "--json").stdout)["problems"] == 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say HOST:PORT of a broker, or --config FILE"),
        (("localhost:port",), "expected HOST:PORT"),
        (("localhost:0",), "expected HOST:PORT"),
        (("::1:9092",), "in brackets"),
        (("a:9092,b:9092",), "one broker at a time"),
        (("localhost:9092", "-X", "nonsense"), "expected KEY=VALUE"),
        (("--config", "/no/such/file"), "does not exist"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], said: str) -> None:
    done = doctor(*words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_check_that_fails_is_a_finding_and_hides_no_other() -> None:
    from leafcuttr.cli.doctor.findings import DoctorCheck, fine

    def breaks(_: object) -> Iterator[DoctorFinding]:
        raise ZeroDivisionError("a plugin's")
        yield

    found = list(
        examine([DoctorCheck("first", breaks), DoctorCheck("second", lambda _: [fine("good")])], None)
    )
    assert [(one.check, one.finding.severity.value) for one in found] == [
        ("first", "problem"),
        ("second", "fine"),
    ]
    assert "ZeroDivisionError: a plugin's" in found[0].finding.seen


@pytest.mark.long
def test_commands_that_it_proposes_exist() -> None:
    """Every `leafcuttr ...` in the lines to change is one that the command line understands."""
    commands = {context.command_path: command for context, command in walk()}
    proposed = set()
    for module in Path(package.__file__).parent.rglob("[a-z]*.py"):
        text = re.sub(r'"\s*\n\s*f?"', "", module.read_text(encoding="utf-8"))
        proposed |= set(re.findall(r"\bleafcuttr [a-z]+(?: (?:[a-z]+(?![a-z.=])|--?[a-zA-Z-]+))*", text))
    proposed -= {words for words in proposed if words.startswith("leafcuttr hard")}  # a user's name
    assert {"leafcuttr configs alter broker --default --set", "leafcuttr serve"} <= proposed
    for line in proposed:
        words = line.split()
        path = next(" ".join(words[:size]) for size in (3, 2) if " ".join(words[:size]) in commands)
        known = {option for parameter in commands[path].params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, line
