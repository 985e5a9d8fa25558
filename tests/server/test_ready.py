"""The line and the file that say that the broker is ready."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from leafcuttr import __version__
from leafcuttr.server.ready import address, ready_line, write_ready_file
from leafcuttr.state.broker import Broker

Serve = Callable[..., Awaitable[Broker]]


@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", "127.0.0.1:9092"), ("", "0.0.0.0:9092"), ("::1", "[::1]:9092"), ("edge", "edge:9092")],
)
def test_addresses(host: str, shown: str) -> None:
    assert address(host, 9092) == shown


async def test_the_line_and_the_file(serve: Serve, tmp_path: Path) -> None:
    broker = await serve({"lc.metrics.enable": "true", "lc.metrics.port": "0"})
    where = f"127.0.0.1:{broker.listeners[0].port}"
    line = ready_line(broker, "./data")
    assert line == f"LeafCuttr {__version__} is ready on PLAINTEXT://{where}, data in ./data"
    file = tmp_path / "ready"
    file.write_text("of another broker")
    write_ready_file(file, broker, str(tmp_path / "data"))
    assert broker.admin is not None
    assert json.loads(file.read_text()) == {
        "version": __version__,
        "pid": os.getpid(),
        "listeners": {"PLAINTEXT": where},
        "plugin_listeners": {},
        "metrics": f"{broker.admin.host}:{broker.admin.port}",
        "data": str((tmp_path / "data").resolve()),
    }
    assert {path.name for path in tmp_path.iterdir()} == {"data", "ready"}
