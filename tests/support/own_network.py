"""A network of its own for programs that listen at, or connect to, ports that cannot be chosen. Takes root, or a system
that lets anybody have namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def own_network() -> Iterator[tuple[str, ...]]:
    """The words before a command that runs it in a network that has only `lo`. Skips where none can be had."""
    if lost := [tool for tool in ("ip", "nsenter", "unshare") if not shutil.which(tool)]:
        pytest.skip(f"not installed: {', '.join(lost)}")
    mine = ["--net"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--net"]
    keeper = subprocess.Popen(
        ["unshare", *mine, "sh", "-c", "ip link set lo up && echo up && exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with keeper:
        try:
            assert keeper.stdout
            assert keeper.stderr
            if keeper.stdout.readline() != b"up\n":
                pytest.skip(f"no network of its own here: {keeper.stderr.read().decode()[:200]}")
            into = ["--net"] if os.geteuid() == 0 else ["--user", "--preserve-credentials", "--net"]
            yield ("nsenter", "--target", str(keeper.pid), *into, "--")
        finally:
            keeper.kill()
