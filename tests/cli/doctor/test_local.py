"""`leafcuttr doctor --config FILE`: every finding is seen in the real situation, on a machine that is so.

The directories of these tests lie in a temporary folder, which is a finding of its own. Longer than most, as the
table of checks is: a finding, a test.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from leafcuttr.cli.doctor.findings import DoctorFinding, DoctorSeverity, examine
from leafcuttr.cli.doctor.local.checks import CHECKS
from leafcuttr.cli.doctor.local.directory import Mount, mount_of
from leafcuttr.cli.doctor.local.site import Site
from leafcuttr.config.listeners import host_name
from support import librdkafka
from support.broker_process import clean_environ, running_broker
from support.forked_start import run_leafcuttr
from support.lesser_disk import lesser_disk
from support.listening import closed_port
from support.loop_disk import loop_disk
from support.namespace import run_behind
from support.tls_peer import Certificates, Identity
from support.waiting import until

KAFKA_DIRECTORY = Path(__file__).parents[2] / "log" / "fixtures" / "kafka-4.3.1"
NOBODY = 65534
SURROUNDINGS = {"disk", "place"}  # of the machine that the tests run on


def look(
    file: Path, *overrides: str, environ: Mapping[str, str] | None = None
) -> dict[str, list[DoctorFinding]]:
    """The findings by check."""
    found: dict[str, list[DoctorFinding]] = {}
    for one in examine(CHECKS, Site(file, environ or {}, overrides)):
        found.setdefault(one.check, []).append(one.finding)
    return found


def only(found: Mapping[str, list[DoctorFinding]], severity: DoctorSeverity, check: str) -> DoctorFinding:
    """The one finding of that severity, which must be of that check."""
    those = [
        (name, one)
        for name, all_of in found.items()
        for one in all_of
        if one.severity is severity and (name not in SURROUNDINGS or name == check)
    ]
    assert [name for name, _ in those] == [check], those
    one = those[0][1]
    assert one.why
    assert one.change
    return one


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A server.properties that is good, with a directory that does not exist yet."""
    path = tmp_path / "server.properties"
    path.write_text(
        f"listeners=PLAINTEXT://127.0.0.1:{closed_port()}\nlog.dirs={tmp_path / 'data'}\n"
        f"lc.metrics.port={closed_port()}\n"
    )
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def used(file: Path, data: Path) -> Path:
    """The directory after a broker has had it: one topic, a clean stop."""
    with running_broker(file.parent) as broker:
        librdkafka.create(broker.address, "orders", 2)
    return data


def passable(folder: Path) -> None:
    """Everybody may go through it and all above it: pytest makes its folders for one user."""
    for one in (folder, *folder.parents):
        if not one.stat().st_mode & 0o001:
            with contextlib.suppress(PermissionError):
                one.chmod(one.stat().st_mode | 0o055)


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """What follows is done without root's rights, if we have them."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_good_configuration(file: Path, data: Path, used: Path) -> None:
    found = look(file)
    others = {name: {one.severity for one in all_of} for name, all_of in found.items() if name != "place"}
    del others["disk"]
    assert others == {check.name: {DoctorSeverity.FINE} for check in CHECKS if check.name not in SURROUNDINGS}
    assert found["format"][0].seen == "format 1, 1 topics"
    assert "for 2 partitions" in found["descriptors"][0].seen
    assert [one.name for one in data.iterdir() if "doctor" in one.name] == [], "something was left behind"


def test_a_directory_that_is_yet_to_be_made(file: Path, data: Path) -> None:
    found = look(file)
    assert found["directory"][0].seen == f"{data} will be made in {file.parent}"
    assert found["format"][0].seen == "there is no data yet"
    assert not data.exists()


def test_a_bad_value_and_an_unknown_name(file: Path) -> None:
    with file.open("a") as more:
        more.write("log.retention.hours=soon\nlog.retention.byte=5\n")
    found = look(file)
    bad, unknown = found["settings"]
    assert (bad.severity, unknown.severity) == (DoctorSeverity.PROBLEM, DoctorSeverity.WARNING)
    assert bad.seen.startswith("log.retention.hours=soon (server.properties:4): allowed is a whole number")
    assert "did you mean log.retention.bytes" in unknown.seen
    assert all(all_of[0].unmet for name, all_of in found.items() if name != "settings")


def test_the_directory_is_a_file(file: Path, data: Path) -> None:
    data.write_text("")
    one = only(look(file), DoctorSeverity.PROBLEM, "directory")
    assert one.seen == f"{data} cannot be made: {data} is a file"
    assert one.change == ("log.dirs=/var/lib/leafcuttr  (server.properties:2)",)


def test_a_line_to_change_is_written_as_the_setting_was_given(file: Path, tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("")
    bad = str(tmp_path / "a-file")
    one = only(look(file, environ={"KAFKA_LOG_DIRS": bad}), DoctorSeverity.PROBLEM, "directory")
    assert one.change == ("KAFKA_LOG_DIRS=/var/lib/leafcuttr",)
    one = only(look(file, f"log.dirs={bad}"), DoctorSeverity.PROBLEM, "directory")
    assert one.change == ("-o log.dirs=/var/lib/leafcuttr",)


def test_a_directory_that_may_not_be_written(file: Path, data: Path) -> None:
    data.mkdir()
    data.chmod(0o555)
    passable(file.parent)
    with as_nobody():
        one = only(look(file), DoctorSeverity.PROBLEM, "directory")
    assert f"{data} may not be written by user" in one.seen
    assert one.change[0].startswith("chown -R")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_partitions_that_belong_to_another_user(file: Path, used: Path) -> None:
    passable(file.parent)
    os.chown(used, NOBODY, NOBODY)
    with as_nobody():
        one = only(look(file), DoctorSeverity.PROBLEM, "directory")
    assert "2 partition folders belong to another user" in one.seen
    assert "to root" in one.seen


def test_a_read_only_file_system(file: Path, tmp_path: Path) -> None:
    with loop_disk(tmp_path) as disk:
        (disk.folder / "data").mkdir()
        subprocess.run(["mount", "-o", "remount,ro", disk.folder], check=True)
        one = only(look(file, f"log.dirs={disk.folder / 'data'}"), DoctorSeverity.PROBLEM, "directory")
    assert "is read-only" in one.seen
    assert f"mount -o remount,rw {disk.folder}" in one.change[0]


def test_a_directory_that_another_broker_uses(file: Path, data: Path, tmp_path: Path) -> None:
    """The one that is meant, on its port, is no problem; one on another port is."""
    with running_broker(tmp_path) as broker:
        one = only(look(file), DoctorSeverity.PROBLEM, "directory")
        assert "in use by another broker" in one.seen
        assert one.change[0] == f"stop the other one: kill {broker.process.pid}"
        found = look(file, f"listeners=PLAINTEXT://{broker.address}")
        assert found["directory"][0].seen.endswith(f"process {broker.process.pid}, which is this broker")
        assert found["ports"][0].severity is DoctorSeverity.FINE
        assert broker.alive()


def test_a_directory_of_a_newer_version(file: Path, used: Path) -> None:
    (used / "leafcuttr.format").write_text("version=99\n")
    one = only(look(file), DoctorSeverity.PROBLEM, "format")
    assert one.seen == f"{used} has format 99, this version knows 1"


def test_a_directory_of_another_node(file: Path, used: Path) -> None:
    one = only(look(file, "node.id=7"), DoctorSeverity.PROBLEM, "format")
    assert "belongs to node.id 1, the configuration says 7" in one.seen
    assert one.change == ("-o node.id=1",)


def test_a_directory_of_apache_kafka(file: Path, data: Path) -> None:
    shutil.copytree(KAFKA_DIRECTORY, data)
    one = only(look(file), DoctorSeverity.PROBLEM, "format")
    assert "was written by Apache Kafka" in one.seen
    assert one.change[0].endswith(f"leafcuttr repair --adopt --execute {data}")


def test_metadata_that_is_damaged(file: Path, used: Path) -> None:
    (used / "metadata.sqlite").write_bytes(b"this is no database, and long enough to be sure" * 100)
    one = only(look(file), DoctorSeverity.PROBLEM, "format")
    assert one.change[0].endswith(f"leafcuttr repair --metadata --execute {used}")


def test_a_log_that_the_disk_did_not_take(file: Path, used: Path) -> None:
    (used / "orders-1" / "sync-failed").write_text("")
    one = only(look(file), DoctorSeverity.WARNING, "format")
    assert "orders-1" in one.seen


def test_data_below_a_temporary_folder(file: Path, tmp_path: Path) -> None:
    if not tmp_path.resolve().is_relative_to("/tmp"):
        pytest.skip("the tests' folder is elsewhere")
    one = only(look(file), DoctorSeverity.WARNING, "place")
    assert one.seen.endswith("is below /tmp")
    assert one.change[0] == "log.dirs=/var/lib/leafcuttr  (server.properties:2)"


def test_a_volume_of_its_own_below_a_temporary_folder_stays(file: Path, tmp_path: Path) -> None:
    """As the data of a container that mounts a volume at /tmp/kafka-logs."""
    with loop_disk(tmp_path) as disk:
        found = look(file, f"log.dirs={disk.folder / 'data'}")["place"]
    assert [one.severity for one in found] == [DoctorSeverity.FINE]


def test_data_in_memory(file: Path) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or mount_of(shared).kind != "tmpfs":
        pytest.skip("no tmpfs at /dev/shm")
    one = only(look(file, "log.dirs=/dev/shm/no-such-folder"), DoctorSeverity.WARNING, "place")
    assert "is in memory (tmpfs at /dev/shm)" in one.seen


def test_data_in_the_layer_of_a_container(tmp_path: Path) -> None:
    for name in ("lower", "disk", "merged"):
        (tmp_path / name).mkdir()
    upper = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/disk/upper,workdir={tmp_path}/disk/work"
    out = run_behind(
        [
            [
                "-t",
                "tmpfs",
                "disk",
                f"{tmp_path}/disk",
                "&&",
                "mkdir",
                f"{tmp_path}/disk/upper",
                f"{tmp_path}/disk/work",
            ],
            ["-t", "overlay", "-o", upper, "overlay", f"{tmp_path}/merged"],
        ],
        [
            *(sys.executable, "-m", "leafcuttr", "doctor", "--json"),
            *("-o", f"log.dirs={tmp_path}/merged/data"),
            *("-o", f"listeners=PLAINTEXT://127.0.0.1:{closed_port()}"),
        ],
        clean_environ(),
    )
    place = [one for one in json.loads(out)["examined"][0]["findings"] if one["check"] == "place"]
    assert [one["severity"] for one in place] == ["warning"]
    assert "container's own layer" in place[0]["seen"]


def test_data_on_another_machine() -> None:
    """No file server here: the kernel's table is read, as it says for NFS."""
    table = (
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "40 22 0:50 / /srv/my\\040data rw,relatime shared:1 - nfs4 host:/export rw,vers=4.2\n"
    )
    assert mount_of(Path("/srv/my data/kafka"), table) == Mount(Path("/srv/my data"), "nfs4")
    assert mount_of(Path("/srv/my data2"), table) == Mount(Path("/"), "ext4")


@pytest.mark.parametrize(("megabytes", "severity", "starts"), [(9, "problem", "9"), (20, "warning", "8")])
def test_a_disk_that_fills(file: Path, tmp_path: Path, megabytes: int, severity: str, starts: str) -> None:
    with loop_disk(tmp_path, megabytes=128) as disk:
        volume = os.statvfs(disk.folder)
        free = volume.f_bavail * volume.f_frsize
        with (disk.folder / "filler").open("wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, free - (megabytes << 20))
        words = f"log.dirs={disk.folder / 'data'}", "lc.log.min.free.bytes=0"
        one = only(look(file, *words), DoctorSeverity(severity), "disk")
    assert f"is {starts}" in one.seen


def test_a_disk_with_less_free_space_than_is_kept(file: Path) -> None:
    one = only(look(file, f"lc.log.min.free.bytes={1 << 60}"), DoctorSeverity.PROBLEM, "disk")
    assert "lc.log.min.free.bytes keeps" in one.seen
    assert "KAFKA_STORAGE_ERROR" in one.why


@contextlib.contextmanager
def memory_disk(folder: Path, options: str) -> Iterator[Path]:
    """A tmpfs with its own limits."""
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "disk", folder], capture_output=True)
    if made.returncode:
        pytest.skip("no mounts here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_disk_that_can_hold_no_more_files(file: Path, tmp_path: Path) -> None:
    with memory_disk(tmp_path / "disk", "size=300m,nr_inodes=60") as folder:
        for number in range(56):
            (folder / f"file-{number}").touch()
        found = look(file, f"log.dirs={folder / 'data'}")
        few = found["disk"][-1]
        for number in range(20):
            with contextlib.suppress(OSError):
                (folder / f"more-{number}").touch()
        none = look(file, f"log.dirs={folder / 'data'}")["file-system"][0]
    assert few.severity is DoctorSeverity.WARNING
    assert "more files" in few.seen
    assert none.severity is DoctorSeverity.PROBLEM
    assert "no folder can be made" in none.seen


def doctor(
    *words: str, environ: Mapping[str, str] | None = None, files: int | None = None
) -> list[dict[str, str]]:
    """The findings of the command in a process of its own, which may open `files` files."""
    limit = None if files is None else (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
    given = ("doctor", "--json", *words)
    done = (
        run_leafcuttr(given, environ=clean_environ(environ))
        if limit is None
        else subprocess.run(
            [sys.executable, "-m", "leafcuttr", *given],
            capture_output=True,
            text=True,
            env=clean_environ(environ),
            preexec_fn=limit,
        )
    )
    assert "Traceback" not in done.stderr, done.stderr
    told = json.loads(done.stdout)
    assert done.returncode == (0 if told["healthy"] else 1)
    found: list[dict[str, str]] = told["examined"][0]["findings"]
    return found


ABILITIES = {
    "locks": ("locks", "problem"),
    "dsync": ("writes that wait for the disk (O_DSYNC)", "problem"),
    "fsync": ("syncing of folders", "problem"),
    "rename": ("renaming over a file", "problem"),
    "sendfile": ("sendfile", "problem"),
    "shared": ("SQLite's write-ahead log", "problem"),
    "names": ("names of 255 bytes", "warning"),
    "case": ("upper and lower case", "warning"),
    "nowait": ("reading from memory only", "warning"),
}


@pytest.mark.long
def test_a_file_system_of_few_abilities(file: Path, tmp_path: Path) -> None:
    environ = lesser_disk(tmp_path, " ".join(ABILITIES))
    found = [one for one in doctor("--config", str(file), environ=environ) if one["check"] == "file-system"]
    seen = {one["seen"].partition(" has no ")[2].rpartition(": ")[0]: one["severity"] for one in found}
    assert seen == dict(ABILITIES.values())


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("files", "severity"), [(300, "problem"), (1000, "warning")])
def test_the_limit_of_open_files(file: Path, files: int, severity: str) -> None:
    found = [one for one in doctor("-c", str(file), files=files) if one["check"] == "descriptors"]
    assert [one["severity"] for one in found] == [severity]
    assert f"the limit of open files is {files}, for 0 partitions and 1000 connections" in found[0]["seen"]
    assert found[0]["change"][0] == "in the systemd unit: LimitNOFILE=65536"


def test_fewer_connections_need_fewer_files(file: Path) -> None:
    found = [
        one
        for one in doctor("-c", str(file), "-o", "max.connections=100", files=1000)
        if one["check"] == "descriptors"
    ]
    assert [one["severity"] for one in found] == ["fine"]


def test_a_port_that_is_taken(file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        one = only(look(file, f"listeners=PLAINTEXT://127.0.0.1:{port}"), DoctorSeverity.PROBLEM, "ports")
    assert one.seen.startswith(f"port {port} is taken by process {os.getpid()} (")
    assert "-o listeners=PLAINTEXT://127.0.0.1:" in one.change[0]


def test_the_port_of_metrics_is_taken(file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        one = only(look(file, f"lc.metrics.port={port}"), DoctorSeverity.WARNING, "ports")
        assert f"port {port} for metrics and health checks is taken by process {os.getpid()}" in one.seen
        assert one.change[0] == f"-o lc.metrics.port={port + 1}"
        off = look(file, f"lc.metrics.port={port}", "lc.metrics.enable=false")
        assert [one.severity for one in off["ports"]] == [DoctorSeverity.FINE]


def test_an_address_of_another_machine(file: Path) -> None:
    one = only(look(file, "listeners=PLAINTEXT://198.51.100.7:9092"), DoctorSeverity.PROBLEM, "ports")
    assert "this machine has no such address" in one.seen
    assert one.change[0] == "-o listeners=PLAINTEXT://0.0.0.0:9092"
    assert one.change[1].startswith(
        "advertised.listeners=PLAINTEXT://198.51.100.7:9092  (add to server.properties)"
    )


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".invalid"])
def test_a_listener_whose_name_is_unknown(file: Path, host: str) -> None:
    found = look(file, f"listeners=PLAINTEXT://{host}:9092")["ports"]
    assert [one.severity for one in found] == [DoctorSeverity.PROBLEM]
    assert f"the host '{host}' is unknown" in found[0].seen


def test_a_port_for_root_only(file: Path) -> None:
    start = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    if not start.exists() or int(start.read_text()) <= 81:
        pytest.skip("everybody may open any port here")
    passable(file.parent)
    file.parent.chmod(0o777)
    with as_nobody():
        found = only(look(file, "listeners=PLAINTEXT://127.0.0.1:81"), DoctorSeverity.PROBLEM, "ports")
    assert "port 81 is below 1024" in found.seen


def test_every_interface_and_nothing_advertised(file: Path) -> None:
    port = closed_port()
    found = look(file, f"listeners=PLAINTEXT://0.0.0.0:{port}")
    assert found["settings"][0].severity is DoctorSeverity.FINE, "it is said once"
    one = found["advertised"][0]
    assert one.severity is DoctorSeverity.WARNING
    assert f"binds every interface and has no advertised address: clients get {host_name()}" in one.seen
    assert one.change[0].startswith(f"advertised.listeners=PLAINTEXT://NAME-THAT-CLIENTS-KNOW:{port}")
    access = found["access"][0]
    assert access.severity is DoctorSeverity.WARNING
    assert "accepts every client that reaches it, without authentication" in access.seen
    assert access.change[0].startswith(f"-o listeners=PLAINTEXT://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("advertised", "seen"),
    [
        ("no-such-host.invalid:9092", "a name that this machine cannot resolve"),
        (
            "localhost:9092",
            "accepts clients from other machines and advertises localhost:9092, which is their own machine",
        ),
    ],
)
def test_what_is_advertised(file: Path, advertised: str, seen: str) -> None:
    found = look(
        file,
        f"listeners=PLAINTEXT://0.0.0.0:{closed_port()}",
        f"advertised.listeners=PLAINTEXT://{advertised}",
    )
    one = found["advertised"][0]
    assert one.severity is DoctorSeverity.WARNING
    assert seen in one.seen


def test_a_clock_that_stands_behind(file: Path, used: Path) -> None:
    log = used / "orders-0" / f"{0:020d}.log"
    later = time.time() + 5 * 3600
    os.utime(log, (later, later))
    one = only(look(file), DoctorSeverity.PROBLEM, "clock")
    assert one.seen.startswith(f"{log} was written 5.0 hours from now")


@pytest.mark.long
def test_the_broker_and_its_configuration_at_once(file: Path, tmp_path: Path) -> None:
    """Both subjects in one call; a broker that runs from that very file."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "leafcuttr",
            "serve",
            "-c",
            str(file),
            "--ready-file",
            str(tmp_path / "ready"),
        ],
        env=clean_environ(),
        stdout=subprocess.DEVNULL,
    )
    try:
        until((tmp_path / "ready").exists, "the broker's ready file")
        address = json.loads((tmp_path / "ready").read_text())["listeners"]["PLAINTEXT"]
        done = subprocess.run(
            [sys.executable, "-m", "leafcuttr", "doctor", address, "-c", str(file)],
            capture_output=True,
            text=True,
            env=clean_environ(),
        )
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    lines = done.stdout.splitlines()
    assert str(file) in lines
    assert address in lines
    assert f"process {process.pid} is this broker and holds its ports" in done.stdout
    assert "reached as advertised: broker 1" in done.stdout


def with_tls(file: Path, folder: Path, *names: str) -> Identity:
    """The configuration with a listener whose certificate has these names."""
    identity = Certificates(folder).issue(*names)
    Path(identity.file).chmod(0o600)
    port = closed_port()
    file.write_text(
        f"listeners=SSL://127.0.0.1:{port}\nlog.dirs={folder / 'data'}\nlc.metrics.port={closed_port()}\n"
        f"ssl.keystore.location={identity.file}\n"
    )
    file.chmod(0o644)
    return identity


def test_a_certificate_that_is_right(file: Path, tmp_path: Path) -> None:
    with_tls(file, tmp_path, "127.0.0.1")
    (found,) = look(file)["certificates"]
    assert found.severity is DoctorSeverity.FINE
    assert found.seen.endswith(" is for 127.0.0.1")


def test_a_certificate_for_other_names(file: Path, tmp_path: Path) -> None:
    with_tls(file, tmp_path, "kafka.test")
    found = only(look(file), DoctorSeverity.PROBLEM, "certificates")
    assert (
        "the certificate is not for 127.0.0.1, as which clients connect; its names are kafka.test"
        in found.seen
    )


def test_a_key_that_everybody_can_read(file: Path, tmp_path: Path) -> None:
    identity = with_tls(file, tmp_path, "127.0.0.1")
    Path(identity.file).chmod(0o644)
    found = only(look(file), DoctorSeverity.WARNING, "certificates")
    assert "every user of this machine can read the private key" in found.seen


def test_a_keystore_that_cannot_be_read(file: Path, tmp_path: Path) -> None:
    with_tls(file, tmp_path, "127.0.0.1")
    found = only(look(file, "ssl.keystore.location=/nowhere"), DoctorSeverity.PROBLEM, "certificates")
    assert found.seen == "ssl.keystore.location=/nowhere: No such file or directory"


def test_passwords_that_everybody_can_read(file: Path, tmp_path: Path) -> None:
    with_tls(file, tmp_path, "127.0.0.1")
    with file.open("a") as settings:
        settings.write("ssl.truststore.password=sesame\n")
    found = only(look(file), DoctorSeverity.WARNING, "certificates")
    assert found.seen == f"every user of this machine can read {file}, which has ssl.truststore.password"
    assert found.change == (f"chmod o-r {file}",)
    file.chmod(0o600)
    assert look(file)["certificates"][0].severity is DoctorSeverity.FINE


def test_the_certificate_of_the_metrics_port(tmp_path: Path) -> None:
    identity = Certificates(tmp_path).issue("kafka.test")
    Path(identity.file).chmod(0o600)
    file = tmp_path / "server.properties"
    file.write_text(
        f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}\n"
        f"lc.metrics.ssl.keystore.location={identity.file}\n"
    )
    (found,) = look(file)["certificates"]
    assert (found.severity, found.seen) == (
        DoctorSeverity.FINE,
        "the certificate of the metrics port can be shown",
    )
    Path(identity.file).chmod(0o644)
    found = only(look(file), DoctorSeverity.WARNING, "certificates")
    assert "every user of this machine can read the private key" in found.seen
    Path(identity.file).unlink()
    found = only(look(file), DoctorSeverity.PROBLEM, "certificates")
    assert found.seen.startswith("lc.metrics.ssl.keystore.location=")


def test_a_listener_that_requires_certificates_is_not_open(file: Path, tmp_path: Path) -> None:
    with_tls(file, tmp_path, "127.0.0.1")
    open_to_all = f"listeners=SSL://0.0.0.0:{closed_port()}"
    assert (
        look(file, open_to_all)["access"][0]
        .change[-1]
        .endswith("lc.listeners.open=refuse  (add to server.properties)")
    )
    required = "ssl.client.auth=required", f"ssl.truststore.location={tmp_path / 'ca.pem'}"
    (found,) = look(file, open_to_all, *required)["access"]
    assert found.severity is DoctorSeverity.FINE
