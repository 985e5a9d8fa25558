"""A relay between brokers over TCP, from kaf-relay's configuration to the records at the target."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from forward.clusters import LOGGER, create, open_peer, produce, values
from leafcuttr_forward.relay.files import read_files
from leafcuttr_forward.relay.planning import make_plan
from leafcuttr_forward.relay.running import CommandClock, Run
from leafcuttr_forward.relay.spec import RelayOptions, relay_run
from support.live_broker import LiveBroker, live_broker


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("edge") / "data", clock=CommandClock()) as broker:
        yield broker


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("hub") / "data", clock=CommandClock()) as broker:
        yield broker


DEFAULTS = RelayOptions()


def toml(source: str, target: str, topics: str, more: str = "") -> str:
    return f"""
[app]
metrics_server_addr = "127.0.0.1:0"
[topics]
{topics}
[source_pool]
healthcheck_interval = "200ms"
request_timeout = "2s"
{more}
[[sources]]
name = "edge"
servers = ["{source}"]
[target]
name = "hub"
servers = ["{target}"]
"""


def run_of(folder: Path, text: str, options: RelayOptions = DEFAULTS, **given: Any) -> Run:
    file = folder / "relay.toml"
    file.write_text(text, encoding="utf-8")
    return Run(relay_run(make_plan(read_files([str(file)]), **given), options), open_peer, LOGGER)


@asynccontextmanager
async def running(run: Run) -> AsyncGenerator[Run]:
    async with trio.open_nursery() as nursery:
        await nursery.start(run.run)
        yield run
        run.stop()


async def test_records_are_copied_until_the_end(tmp_path: Path, edge: LiveBroker, hub: LiveBroker) -> None:
    create(edge.address, "a", 2)
    produce(edge.address, "a", [f"x{number}" for number in range(50)])
    produce(edge.address, "a", [f"y{number}" for number in range(30)], 1)
    run = run_of(tmp_path, toml(edge.address, hub.address, 'a = "a_copy"'), stop_at_end=True)
    with trio.fail_after(60):
        await run.run()
    assert (run.status, run.why) == (0, None)
    assert values(hub.address, "a_copy") == [f"x{number}" for number in range(50)]
    assert values(hub.address, "a_copy", 1) == [f"y{number}" for number in range(30)]
    assert run.counters.total == 80
