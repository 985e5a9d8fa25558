#!/usr/bin/env python3
"""What TLS, log-in, ACLs and quotas cost: one table for each row, and with --json what it is made of.

  security.py [--row tls acls start names idle back quota] [--runs 5] [--scale 1.0] [--json FILE]

tls    produce, consume and one record a batch over TLS 1.3, beside a Kafka with the same certificate, in turn
acls   produce, one record a batch and consume with an authorizer and 10,000 ACLs, beside the same without, in turn
start  a start with 10,000 ACLs and as many users, beside one without, in turn
names  the verdict on a name that has not been seen, in process
idle   memory of an idle connection over TLS, beside a plain one
back   1,000 clients that come back at once, each with a handshake and a log-in by SCRAM, and one that has been there
quota  a producer with a quota over 30 s, and another one without beside it
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from load import BUILD, ONE_A_BATCH, Scale, delete_topics, kperf, scaled
from peers import HERE, Kafka, LeafCuttr, Peer, free_port
from rawclient import seconds_to_first_ack
from rows import AT_ONCE

COUNT: Final = 10_000
"""ACLs and users."""
USER, PASSWORD = "bench", "bench-password"
ANONYMOUS: Final = "User:ANONYMOUS"
AUTHORIZER: Final = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PINNED: Final = ("taskset", "-c", str(max(os.sched_getaffinity(0))))
Figures = dict[str, float]
Table = dict[str, dict[str, list[float]]]
"""By figure, by side: one value a run."""


@dataclass(frozen=True)
class Certificate:
    """Of 127.0.0.1, by an authority of its own; PEM files."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def server(self) -> Path:
        return self.folder / "server.pem"

    def make(self) -> "Certificate":
        import trustme
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            load_pem_private_key,
        )

        authority = trustme.CA()
        made = authority.issue_cert("127.0.0.1", "localhost")
        key = load_pem_private_key(made.private_key_pem.bytes(), None)
        # PKCS#8, which is all that Kafka takes.
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self.server.write_bytes(pem + b"".join(each.bytes() for each in made.cert_chain_pems))
        self.authority.write_bytes(authority.cert_pem.bytes())
        return self

    def settings(self) -> tuple[str, ...]:
        return (
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={self.server}",
            "ssl.enabled.protocols=TLSv1.3",
        )

    def client(self) -> tuple[str, ...]:
        return ("security.protocol=ssl", f"ssl.ca.location={self.authority}")


class Bench:
    """What the rows share."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.folder = folder
        self.runs = runs
        self.certificate = Certificate(folder).make()
        self._made = 0

    def directory(self) -> Path:
        self._made += 1
        return self.folder / f"broker-{self._made}"

    def ours(self, name: str, *settings: str, protocol: str = "") -> tuple[LeafCuttr, str]:
        """A broker and its address of this protocol beside PLAINTEXT, or PLAINTEXT's."""
        peer, port = LeafCuttr(name, self.directory()), free_port()
        listeners = f"listeners=PLAINTEXT://127.0.0.1:{peer.port}"
        if protocol:
            listeners += f",{protocol}://127.0.0.1:{port}"
        peer.settings = (listeners, AT_ONCE, *(self.certificate.settings() if protocol else ()), *settings)
        return peer, f"127.0.0.1:{port if protocol else peer.port}"

    def kafka(self) -> tuple[Kafka, str]:
        peer, port = Kafka("kafka", self.directory()), free_port()
        both = f"PLAINTEXT://127.0.0.1:{peer.port},SSL://127.0.0.1:{port}"
        peer.settings = (
            f"listeners={both},CONTROLLER://127.0.0.1:{peer.port + 1}",
            f"advertised.listeners={both}",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
            AT_ONCE,
            *self.certificate.settings(),
        )
        return peer, f"127.0.0.1:{port}"


@contextmanager
def started(*peers: Peer) -> Iterator[None]:
    try:
        for peer in peers:
            peer.start()
            seconds_to_first_ack(peer.port, "first", time.monotonic())
        yield
    finally:
        for peer in peers:
            peer.stop()
            peer.wipe()


def rates(peer: Peer, address: str, run: int, *client: str) -> Figures:
    """Produce, consume and one record a batch, at this address of the peer; rates and the broker's processor time."""
    found: Figures = {}
    large, small = scaled(600_000), scaled(100_000)
    for name, count, words in (
        ("produce 1000 B", large, ("produce", address, f"r-{run}", str(large), "1000", *client)),
        ("consume 1000 B", large, ("consume", address, f"r-{run}", str(large), *client)),
        (
            "one record a batch",
            small,
            ("produce", address, f"o-{run}", str(small), "100", *ONE_A_BATCH, "max.in.flight=100", *client),
        ),
    ):
        before = peer.cpu_s()
        found[f"{name}: records/s"] = kperf(*words)["records_per_s"]
        found[f"{name}: broker's CPU µs/record"] = (peer.cpu_s() - before) * 1e6 / count
    delete_topics(peer)
    return found


def in_turn(sides: Sequence[tuple[Peer, Callable[[int], Figures]]], runs: int) -> Table:
    """The first round warms up, and is not counted."""
    found: Table = {}
    for run in range(runs + 1):
        for peer, measure in reversed(sides) if run % 2 else sides:
            figures = measure(run)
            print(
                f"{peer.name} #{run}: { ({name: round(value, 2) for name, value in figures.items()}) }",
                flush=True,
            )
            for name, value in figures.items() if run else ():
                found.setdefault(name, {each.name: [] for each, _ in sides})[peer.name].append(value)
    return found


def tls(bench: Bench) -> Table:
    ours, our_address = bench.ours("leafcuttr", protocol="SSL")
    kafka, its_address = bench.kafka()
    client = bench.certificate.client()
    with started(ours, kafka):
        return in_turn(
            [
                (ours, lambda run: rates(ours, our_address, run, *client)),
                (kafka, lambda run: rates(kafka, its_address, run, *client)),
            ],
            bench.runs,
        )


def acls(bench: Bench) -> Table:
    plain, plain_address = bench.ours("without")
    ruled, ruled_address = bench.ours("10,000 ACLs", AUTHORIZER, f"super.users={ANONYMOUS}")
    with started(plain):
        try:
            ruled.start()
            seconds_to_first_ack(ruled.port, "first", time.monotonic())
            make_acls(ruled, USER_ACLS + COUNT_OF_OTHERS)
            ruled.stop()
            ruled.settings = tuple(each for each in ruled.settings if not each.startswith("super.users"))
            ruled.start()
            seconds_to_first_ack(ruled.port, "r-first", time.monotonic())
            return in_turn(
                [
                    (plain, lambda run: rates(plain, plain_address, run)),
                    (ruled, lambda run: rates(ruled, ruled_address, run)),
                ],
                bench.runs,
            )
        finally:
            ruled.stop()


def _binding(resource: str, name: str, pattern: str, principal: str, operation: str) -> Any:
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
    )

    return AclBinding(
        ResourceType[resource],
        name,
        ResourcePatternType[pattern],
        principal,
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )


USER_ACLS: Final = (
    ("TOPIC", "r-", "PREFIXED", ANONYMOUS, "ALL"),
    ("TOPIC", "o-", "PREFIXED", ANONYMOUS, "ALL"),
    ("BROKER", "kafka-cluster", "LITERAL", ANONYMOUS, "ALL"),
)
"""What the load needs. librdkafka calls the cluster a broker."""
COUNT_OF_OTHERS: Final = tuple(
    (
        "TOPIC",
        f"topic-{number % 4000}{'-' * (number % 3 == 0)}",
        "PREFIXED" if number % 3 == 0 else "LITERAL",
        f"User:user-{number % 997}",
        "READ" if number % 2 else "WRITE",
    )
    for number in range(COUNT - len(USER_ACLS))
)


def make_acls(peer: Peer, wanted: Sequence[tuple[str, str, str, str, str]]) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": peer.address})
    bindings = [_binding(*each) for each in wanted]
    for at in range(0, len(bindings), 1000):
        for done in admin.create_acls(bindings[at : at + 1000], request_timeout=60).values():
            done.result(60)


def make_users(peer: Peer, names: Sequence[str], iterations: int = 4096) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    admin = AdminClient({"bootstrap.servers": peer.address})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, iterations)
    for at in range(0, len(names), 500):
        wanted = [
            UserScramCredentialUpsertion(name, info, PASSWORD.encode()) for name in names[at : at + 500]
        ]
        for done in admin.alter_user_scram_credentials(wanted, request_timeout=60).values():
            done.result(60)


def start(bench: Bench) -> Table:
    plain, _ = bench.ours("without")
    ruled, _ = bench.ours("10,000 ACLs and users", AUTHORIZER, f"super.users={ANONYMOUS}")
    with started(plain, ruled):
        make_acls(ruled, COUNT_OF_OTHERS)
        make_users(ruled, [f"user-{number}" for number in range(scaled(COUNT))])

        def again(peer: Peer) -> Figures:
            peer.stop()
            began = time.monotonic()
            peer.start()
            return {"first acknowledgement s": seconds_to_first_ack(peer.port, "first", began)}

        return in_turn([(peer, lambda _, peer=peer: again(peer)) for peer in (plain, ruled)], 2 * bench.runs)


def names(bench: Bench) -> Table:
    """Without a broker: the authorizer alone, with the same rules."""
    from leafcuttr.state.identity import ClientIdentity, Principal
    from leafcuttr.state.security.acl import Acl, AclOperation, AclPermission, AclResourceType, PatternType
    from leafcuttr.state.security.acl_rules import AclRules

    rules = AclRules(
        [
            Acl(
                AclResourceType[resource],
                name,
                PatternType[pattern],
                principal,
                "*",
                AclOperation[operation],
                AclPermission.ALLOW,
            )
            for resource, name, pattern, principal, operation in COUNT_OF_OTHERS
        ],
        (),
        allow_if_no_acl=False,
    )
    client = ClientIdentity(Principal("User", "user-7"), "PLAINTEXT", "PLAINTEXT", "127.0.0.1", 1)
    found: Table = {}
    for kind, pattern in (("a topic with ACLs", "topic-{}"), ("another topic", "nobody-{}-of-them")):
        for _ in range(bench.runs):
            asked = [pattern.format(number) for number in range(4000)]
            began = time.perf_counter()
            for name in asked:
                rules.operations(str(client.principal), client.host, AclResourceType.TOPIC, name)
            took = (time.perf_counter() - began) * 1e6 / len(asked)
            found.setdefault("a name not seen before µs", {}).setdefault(kind, []).append(took)
    return found


def idle(bench: Bench) -> Table:
    count = scaled(500)
    found: Table = {}
    for _ in range(bench.runs):
        for name, protocol in (("plain", ""), ("TLS", "SSL")):
            peer, address = bench.ours(name, protocol=protocol)
            with started(peer):
                clients(address, bench, tls=bool(protocol), count=1).close()  # what the first one imports
                before = peer.rss_mb()
                held = clients(address, bench, tls=bool(protocol), count=count)
                taken = (peer.rss_mb() - before) * 1e6 / 1024 / count
                held.close()
            found.setdefault("an idle connection KiB", {}).setdefault(name, []).append(taken)
    return found


class Held:
    """A process that keeps connections open."""

    def __init__(self, words: Sequence[str]) -> None:
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.said: dict[str, Any] = json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def clients(address: str, bench: Bench, *, tls: bool, count: int, user: str = "") -> Held:
    words = [
        *PINNED,
        "nice",
        "-n",
        "15",
        sys.executable,
        str(HERE / "security_clients.py"),
        address,
        str(count),
    ]
    if tls:
        words += ["--authority", str(bench.certificate.authority)]
    if user:
        words += ["--user", user, "--password", PASSWORD]
    return Held(words)


def back(bench: Bench) -> Table:
    """All at once; the time until the last one is served, and the latency of one that has been there before."""
    peer, address = bench.ours(
        "leafcuttr",
        "sasl.enabled.mechanisms=SCRAM-SHA-256",
        f"lc.metrics.port={(admin := free_port())}",
        protocol="SASL_SSL",
    )
    found: Table = {}
    count, processes = scaled(1000), 2
    with started(peer):
        make_users(peer, [USER])
        kperf("produce", peer.address, "there", "1", "100")
        for run in range(bench.runs + 1):
            # Beside the load on one processor, but before it: what it waits for is the broker.
            established = subprocess.Popen(
                [*PINNED, str(BUILD), "latency", peer.address, "there", "200", "8"],
                stdout=subprocess.PIPE,
                text=True,
            )
            time.sleep(2)  # it is under way
            before = loop_delays(admin)
            with ThreadPoolExecutor() as pool:
                held = list(
                    pool.map(
                        lambda _: clients(address, bench, tls=True, count=count // processes, user=USER),
                        range(processes),
                    )
                )
            served_s = max(each.said["ended"] for each in held) - min(each.said["began"] for each in held)
            late_ms = delay_p99_ms(before, loop_delays(admin))
            p99 = json.loads(established.communicate()[0])["ack"]["p99_ms"]
            for each in held:
                each.close()
            figures = {
                "served s": served_s,
                "the broker's loop late by, p99 ms": late_ms,
                "established client's p99 ms": p99,
            }
            print(f"#{run}: {figures}", flush=True)
            for name, value in figures.items() if run else ():
                found.setdefault(name, {}).setdefault(peer.name, []).append(value)
    return found


def loop_delays(port: int) -> dict[float, float]:
    """How often the event loop has been late by at most so many seconds."""
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    found = re.findall(r'^leafcuttr_loop_delay_seconds_bucket\{le="([^"]+)"\} (\S+)', text, re.MULTILINE)
    return {float(bound): float(count) for bound, count in found}


def delay_p99_ms(before: Mapping[float, float], after: Mapping[float, float]) -> float:
    """The least bound that 99 of 100 of those in between keep."""
    counts = {bound: after[bound] - before.get(bound, 0) for bound in sorted(after)}
    total = max(counts.values())
    return next(bound for bound, count in counts.items() if count >= 0.99 * total) * 1000


def quota(bench: Bench) -> Table:
    """A quota of 5 MB/s, and what another client's latency is beside it and without it."""
    rate, seconds = 5_000_000, max(5, int(30 * Scale.by))
    peer, address = bench.ours("leafcuttr")
    found: Table = {}
    with started(peer):
        for run in range(bench.runs):
            # A new client each time: one that was idle may take a window more at once.
            client = f"held-{run}"
            command = [sys.executable, str(HERE / "kafka_peer.py"), "tool", "kafka.admin.ConfigCommand"]
            entity = ["--entity-type", "clients", "--entity-name", client]
            altered = ["--alter", *entity, "--add-config", f"producer_byte_rate={rate}"]
            subprocess.run([*command, "--bootstrap-server", address, *altered], check=True)
            alone = kperf("latency", address, f"alone-{run}", "200", "10")
            count = rate * seconds // 1000
            held = subprocess.Popen(
                [str(BUILD), "produce", address, client, str(count), "1000", f"client.id={client}"],
                stdout=subprocess.PIPE,
                text=True,
            )
            beside = kperf("latency", address, f"beside-{run}", "200", str(seconds * 2 // 3))
            got = json.loads(held.communicate()[0])["records_per_s"] * 1000
            for name, value in (
                ("of its quota", got / rate),
                ("others' p99 ms, alone", alone["ack"]["p99_ms"]),  # type: ignore[index]
                ("others' p99 ms, beside it", beside["ack"]["p99_ms"]),  # type: ignore[index]
            ):
                print(f"#{run}: {name} {value:.3f}", flush=True)
                found.setdefault(name, {}).setdefault(peer.name, []).append(value)
    return found


ROWS: Final[Mapping[str, Callable[[Bench], Table]]] = {
    "tls": tls,
    "acls": acls,
    "start": start,
    "names": names,
    "idle": idle,
    "back": back,
    "quota": quota,
}


def lines(table: Table) -> Iterator[str]:
    """A table in Markdown: medians, and the median of the ratios of the first side by the second."""
    sides = list(next(iter(table.values())))
    yield f"| what | {' | '.join(sides)} |{' ratio (worst..best pair) |' * (len(sides) == 2)}"
    yield "|---|" + "---:|" * (len(sides) + (len(sides) == 2))
    for name, values in table.items():
        told = [f"{statistics.median(values[side]):,.2f}" for side in sides]
        if len(sides) == 2:
            ratios = sorted(a / b for a, b in zip(*(values[side] for side in sides), strict=True))
            told.append(f"{statistics.median(ratios):.3f} ({ratios[0]:.3f}..{ratios[-1]:.3f})")
        yield f"| {name} | {' | '.join(told)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--row", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="less than 1 only to try the machinery")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    Scale.by = given.scale
    tables: dict[str, Table] = {}
    with tempfile.TemporaryDirectory(prefix="bench-security-", ignore_cleanup_errors=True) as folder:
        bench = Bench(Path(folder), given.runs)
        for row in given.row:
            tables[row] = ROWS[row](bench)
            print("\n".join(["", row, "", *lines(tables[row]), ""]), flush=True)
            if given.json:
                given.json.write_text(json.dumps(tables, indent=1))


if __name__ == "__main__":
    main()
