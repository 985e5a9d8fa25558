"""kaf-relay itself, where it can be had: the program that LEAFCUTTR_KAF_RELAY names, or what `go install` makes, once,
in ~/.cache/kaf-relay; nothing of it lies in this repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from support import jars

MODULE = "github.com/zerodha/kaf-relay@latest"
FILE = """[app]
log_level = "error"
metrics_server_addr = "127.0.0.1:0"
[topics]
{topics}
[source_pool]
healthcheck_interval = "3s"
offset_lag_threshold = 1000
max_retries = -1
backoff_enable = true
backoff_min = "100ms"
backoff_max = "1s"
request_timeout = "2s"
[[sources]]
name = "source"
servers = ["{source}"]
session_timeout = "6s"
[target]
name = "target"
servers = ["{target}"]
enable_idempotency = true
commit_ack_type = "cluster"
flush_frequency = "20ms"
session_timeout = "6s"
max_retries = -1
flush_batch_size = 1000
batch_size = 1000
buffer_size = 100000
max_message_bytes = 1000000
backoff_enable = true
backoff_min = "100ms"
backoff_max = "1s"
request_timeout = "2s"
"""


def program() -> Path | str:
    """The program, or why there is none."""
    named = os.environ.get("LEAFCUTTR_KAF_RELAY")
    if named:
        return Path(named)
    folder = jars.cache("kaf-relay")
    found = folder / "kaf-relay"
    if not found.exists():
        if shutil.which("go") is None:
            return "go is not installed: no kaf-relay here"
        done = subprocess.run(
            ["go", "install", MODULE],
            env={**os.environ, "GOBIN": str(folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return f"kaf-relay cannot be built: {done.stderr[-200:].strip()}"
    return found


def file_of(folder: Path, source: str, target: str, topics: Mapping[str, str]) -> Path:
    """A configuration of it, with each key that it cannot do without."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.toml"
    lines = "\n".join(f'"{one}" = "{other}"' for one, other in topics.items())
    file.write_text(FILE.format(source=source, target=target, topics=lines))
    return file


def run_to_the_end(program: Path, file: Path, seconds: float = 120.0) -> str:
    """In mode single, until all is copied; what it said. Raises RuntimeError."""
    done = subprocess.run(
        [str(program), "--config", str(file), "--mode", "single", "--stop-at-end"],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    if done.returncode:
        raise RuntimeError(
            f"kaf-relay ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return done.stdout + done.stderr
