"""What HTTP services cost in memory while nobody uses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.broker_process import clean_environ

MOST_MB = 16 + 4
"""Of the first service: 16 for hypercorn, and some for the rest of the machine's mood."""
MOST_MORE_MB = 2.0

_PROGRAM = """
import sys
import gc, os
from pathlib import Path
import trio
import leafcuttr

def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

MODULE = '''
from leafcuttr_sdk import Plugin, ServiceSpec
from leafcuttr_sdk.web import web_settings

PLUGIN = Plugin("{name}", 1, "a service", enabled_by="lc.plugin.{name}.enable")

def leafcuttr_register_settings():
    from leafcuttr_sdk import Setting, Type
    yield Setting("lc.plugin.{name}.enable", Type.BOOLEAN, False, "On.")
    yield from web_settings("lc.plugin.{name}", 0)

class Made:
    def __init__(self, broker):
        from leafcuttr_sdk.web import HttpServer
        self.server = HttpServer(broker, "lc.plugin.{name}", name="{name}", title="{name}")

    async def run(self, *, task_status):
        from leafcuttr_sdk.web import Application, Routes
        await self.server.run(lambda serving: Application(Routes()), task_status=task_status)

def leafcuttr_register_services():
    yield ServiceSpec("{name}", Made)
'''

async def main(folder, names):
    folder = Path(folder)
    plugins = folder / "plugins"
    plugins.mkdir(parents=True)
    for name in ("one", "two", "three"):
        (plugins / f"{name}.py").write_text(MODULE.replace("{name}", name))
    given = {
        "log.dirs": str(folder / "data"), "listeners": "PLAINTEXT://127.0.0.1:0", "lc.metrics.port": 0,
        "lc.plugins.path": str(plugins), "lc.plugins.strict": True,
        **{f"lc.plugin.{name}.enable": True for name in names},
    }
    async with leafcuttr.open_broker(given) as broker:
        assert len([each for each in broker.listeners if each.startswith("lc.plugin.")]) == len(names)
        print(resident())

trio.run(main, sys.argv[1], sys.argv[2:])
"""


def megabytes(folder: Path, *names: str) -> float:
    """Of a broker in a process of its own with these services."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(folder), *names],
        capture_output=True,
        text=True,
        timeout=120,
        env=clean_environ({"PYTHONPATH": str(Path(__file__).parents[2])}),
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.alone
def test_the_first_service_and_the_next_ones(tmp_path: Path) -> None:
    bare = megabytes(tmp_path / "bare")
    one = megabytes(tmp_path / "one", "one")
    three = megabytes(tmp_path / "three", "one", "two", "three")
    said = f"without one {bare:.1f} MB, with one {one:.1f} MB, with three {three:.1f} MB"
    print(said)
    assert one - bare < MOST_MB, said
    assert (three - one) / 2 < MOST_MORE_MB, said
