"""Builds and runs the programs below tests/clients/programs that go through the duties of `support.client_duties`.

What a build leaves lies in ~/.cache (or LEAFCUTTR_TEST_CACHE) and is used again until its source changes. Versions are
pinned beside the sources: go.mod and go.sum, package-lock.json, Cargo.lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from support import jars
from support.client_duties import Told

PROGRAMS = Path(__file__).parent.parent / "clients" / "programs"
BUILD_S = 900
RUN_S = 400


@dataclass(frozen=True)
class Program:
    """One client. `tools` are the commands it needs; `lacks` says why it cannot do a duty. `build_secured` is for a
    program of its own that does the duties of `secured_duties`; without it `build`'s does them."""

    client: str
    version: str
    build: Callable[[], list[str]]
    tools: tuple[str, ...]
    lacks: Mapping[str, str] = field(default_factory=dict)
    build_secured: Callable[[], list[str]] | None = None

    @property
    def missing(self) -> str:
        """Why it cannot run here; empty if it can."""
        lost = [tool for tool in self.tools if shutil.which(tool) is None]
        return f"not installed: {', '.join(lost)}" if lost else ""

    def run(self, *words: str) -> Told:
        """Build it if need be, and let it do all its duties: the words of its command line say where. Raises
        RuntimeError if it cannot be built."""
        return self.told([*self.build(), *words])

    def secured(self) -> list[str]:
        """Build what does the duties of `secured_duties`; the command, which takes a duty and a file."""
        return [*self.build(), "secured"] if self.build_secured is None else self.build_secured()

    def told(self, command: list[str]) -> Told:
        """What one of its commands says."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
        except subprocess.TimeoutExpired as late:
            said, complained = ((words or b"").decode() for words in (late.stdout, late.stderr))
            return Told.by(said, f"not done within {RUN_S} s: {complained[-3000:]}")
        error = done.stderr[-3000:] or f"status {done.returncode}"
        return Told.by(done.stdout, error if done.returncode else "")


def _make(folder: Path, *command: str) -> None:
    """Run one step of a build. Raises RuntimeError with its last words."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=BUILD_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr + done.stdout)[-3000:]}")


def go(name: str) -> list[str]:
    binary = jars.cache("leafcuttr-clients") / f"go-{name}"
    _make(PROGRAMS / name, "go", "build", "-mod=readonly", "-o", str(binary), ".")
    return [str(binary)]


def node(name: str) -> list[str]:
    source = PROGRAMS / name
    pinned = (source / "package-lock.json").read_bytes() + os.uname().machine.encode()
    version = subprocess.run(["node", "--version"], capture_output=True, check=True).stdout
    digest = hashlib.sha256(pinned + version).hexdigest()[:12]
    folder = jars.cache("leafcuttr-clients") / f"node-{name}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    # Tests run in several processes: one builds.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for file in source.iterdir():
            shutil.copy(file, folder)
        if not (folder / "complete").exists():
            _make(folder, "npm", "ci", "--no-fund", "--no-audit")
            (folder / "complete").touch()
    return ["node", str(folder / "main.js")]


def rust(name: str) -> list[str]:
    target = jars.cache("leafcuttr-clients") / f"rust-{name}"
    _make(PROGRAMS / name, "cargo", "build", "--locked", "--quiet", "--target-dir", str(target))
    return [str(target / "debug" / f"leafcuttr-client-{name}")]


def java(version: str, source: str = "Client.java") -> list[str]:
    return jars.java(version, str(PROGRAMS / "java" / source))


def pinned(file: str, pattern: str) -> str:
    """The version that a file below the programs pins."""
    found = re.search(pattern, (PROGRAMS / file).read_text())
    assert found, f"{file} pins nothing like {pattern}"
    return " with librdkafka ".join(found.groups())


ALL = [
    Program("franz-go", pinned("franz_go/go.mod", r"/franz-go v(\S+)"), lambda: go("franz_go"), ("go",)),
    Program("sarama", pinned("sarama/go.mod", r"/sarama v(\S+)"), lambda: go("sarama"), ("go",)),
    Program(
        "kafkajs",
        pinned("kafkajs/package.json", r'"kafkajs": "(\S+)"'),
        lambda: node("kafkajs"),
        ("node", "npm"),
    ),
    Program(
        "node-rdkafka",
        pinned("node_rdkafka/package.json", r'"node-rdkafka": "(\S+)"'),
        lambda: node("node_rdkafka"),
        ("node", "npm", "make", "c++"),
        {"alter": "its administrator creates, grows and deletes topics, and nothing else"},
    ),
    Program(
        "rdkafka (Rust)",
        pinned(
            "rdkafka/Cargo.lock",
            r'name = "rdkafka"\nversion = "(\S+)"(?s:.*)"rdkafka-sys"\nversion = "[^+]+\+([^"]+)"',
        ),
        lambda: rust("rdkafka"),
        ("cargo", "make", "c++"),
    ),
    *(
        Program(
            "Kafka's Java client",
            version,
            partial(java, version),
            ("java", "mvn"),
            build_secured=partial(java, version, "Secured.java"),
        )
        for version in ("3.9.1", "4.3.1")
    ),
]
