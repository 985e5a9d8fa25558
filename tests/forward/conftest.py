from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from forward.clusters import LOGGER, open_peer
from leafcuttr_forward.relay.files import read_files
from leafcuttr_forward.relay.planning import make_plan
from leafcuttr_forward.relay.running import CommandClock, Run
from leafcuttr_forward.relay.spec import RelayOptions, relay_run
from support.forwarded_batches import Judging
from support.live_broker import LiveBroker, live_broker
from support.waiting import free_port

MakeRun = Callable[..., Run]
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    """A source."""
    with live_broker(tmp_path_factory.mktemp("edge") / "data", clock=CommandClock()) as broker:
        yield broker


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    """A target."""
    with live_broker(tmp_path_factory.mktemp("hub") / "data", clock=CommandClock()) as broker:
        yield broker


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """`make_run(sources, target, {"a": "b"})` is a relay of a file with these, of a name that is the test's own."""
    name = f"relay-{next(_NUMBERS)}"

    def make(
        sources: list[str],
        target: str,
        topics: dict[str, str],
        *,
        pool: str = 'request_timeout = "5s"',
        more: str = "",
        more_of_source: str = 'session_timeout = "5s"',
        options: RelayOptions | None = None,
        judge: Any = None,
        **given: Any,
    ) -> Run:
        lines = [
            '[app]\nmetrics_server_addr = "127.0.0.1:0"\n[topics]',
            *(f'"{source}" = "{to}"' for source, to in topics.items()),
            f'[source_pool]\nhealthcheck_interval = "200ms"\n{pool}',
            *(
                f'[[sources]]\nname = "node{number}"\nservers = ["{address}"]\n{more_of_source}\n'
                for number, address in enumerate(sources, 1)
            ),
            f'[target]\nname = "hub"\nservers = ["{target}"]\n{more}',
        ]
        file = tmp_path / "relay.toml"
        file.write_text("\n".join(lines), encoding="utf-8")
        plan = make_plan(read_files([str(file)]), **given)
        filters = ("a filter",) if judge is not None else ()
        chosen = options or RelayOptions()
        if chosen.name is None:
            chosen = chosen._replace(name=name)

        async def make_chain(names: Sequence[str], topic: str) -> Any:
            return Judging(cast(Any, judge)(topic))

        return Run(relay_run(plan, chosen, filters), open_peer, LOGGER, make_chain if judge else None)

    return make


@asynccontextmanager
async def started(run: Run) -> AsyncGenerator[Run]:
    """The run, until the end of the block."""
    async with trio.open_nursery() as nursery:
        await nursery.start(run.run)
        yield run
        run.stop()


@pytest.fixture
def unused_port() -> int:
    """Nothing listens there."""
    return free_port()
