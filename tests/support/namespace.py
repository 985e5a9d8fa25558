"""Programs that see other mounts than the rest of the machine: an own /etc/hosts, an overlay. Takes root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

import pytest


def run_behind(mounts: Sequence[Sequence[str]], command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Run `command` in a mount namespace after these `mount` commands; its standard output. Skips where none can be
    had."""
    if os.geteuid() or not shutil.which("unshare"):
        pytest.skip("mount namespaces are for root")
    script = " && ".join(["mount " + " ".join(one) for one in mounts] + ["exec " + " ".join(command)])
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, env=dict(environ)
    )
    if "unshare" in tried.stderr or "mount:" in tried.stderr:
        pytest.skip(f"no mounts here: {tried.stderr.strip()[:200]}")
    assert "Traceback" not in tried.stderr, tried.stderr
    return tried.stdout
