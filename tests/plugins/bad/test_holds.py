"""What holds the event loop is named with plugin, part, file and line while it does; what only takes long holds up
nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from support.bad_plugins import HOLD, PARTS, SLOW, Fault, ways_to_authenticate, write
from support.broker_process import running_broker
from support.driven_plugins import Driven
from support.waiting import until
from support.wire_client import WireClient


@pytest.fixture(scope="module", params=[0.0, pytest.param(3.0, marks=pytest.mark.long)])
def held_s(request: pytest.FixtureRequest) -> float:
    """For how long the loop is held at least. Each needs a broker of its own: a part is named once a minute."""
    return float(request.param)


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory, held_s: float) -> Iterator[Driven]:
    folder = tmp_path_factory.mktemp("holds")
    write(folder / "plugins", "holds", Fault("hold()", ""), HOLD + PARTS)
    (folder / "plugins" / "slow.py").write_text(SLOW)
    settings = {"lc.plugins.path": str(folder / "plugins"), "auto.create.topics.enable": "false"}
    settings |= ways_to_authenticate("holds")
    with running_broker(folder, settings) as broker, WireClient(broker.address) as wire:
        found = Driven(broker, wire)
        assert found.create("well") is None
        assert found.create("filtered", lc_filters="holds-filter") is None
        assert found.create("validated", lc_validators="holds-validator") is None
        yield found


WAYS: Final[dict[str, Callable[[Driven], object]]] = {
    "health check look": lambda driven: driven.get("/health"),
    "route /plugins/holds/route": lambda driven: driven.get("/plugins/holds/route"),
    "metric leafcuttr_holds_read": lambda driven: driven.get("/metrics?name[]=leafcuttr_holds_read"),
    "metric leafcuttr_holds_steps": lambda driven: driven.get("/metrics?name[]=leafcuttr_holds_steps"),
    "record filter holds-filter of topic filtered": lambda driven: driven.produce("filtered"),
    "produce validator holds-validator of topic validated": lambda driven: driven.produce("validated"),
    "handler of lc.plugin.holds.served": lambda driven: driven.connect("lc.plugin.holds.served").close(),
    "authenticator holds-auth": lambda driven: driven.get("/plugins/holds/authenticate/door"),
    "callback on changed settings": lambda driven: driven.set("lc.plugin.holds.count", "7"),
    "callback on changed topics": lambda driven: driven.create("holds-topic"),
    "service holds-fails": lambda driven: driven.get("/plugins/holds/do-task"),
    "system task watcher": lambda driven: driven.get("/plugins/holds/do-spawn"),
    "code": lambda driven: driven.get("/plugins/holds/do-soon"),
    # The last: from here on each change of a setting checks this one too.
    "check of lc.plugin.holds.checked": lambda driven: driven.set("lc.plugin.holds.checked", "13"),
}


@pytest.mark.parametrize("part", WAYS)
def test_what_holds_the_loop_is_named(driven: Driven, part: str, held_s: float) -> None:
    armed = Path(driven.broker.folder) / "armed"
    if " of topic " in part:
        driven.produce(
            part.rpartition(" ")[2]
        )  # so that its pace is known: what is quick is done on the loop
    armed.write_text(str(held_s))
    WAYS[part](driven)
    until(lambda: not armed.exists(), f"{part} to hold the loop")
    start = f"the {part} of plugin holds has held the event loop for over 100 ms"
    until(lambda: start in driven.broker.log, "the warning")
    (line,) = [line for line in driven.broker.log.splitlines() if start in line]
    assert "holds.py:" in line and " in hold" in line
    assert driven.is_well()


def test_what_waits_holds_up_nothing(driven: Driven) -> None:
    """All at once: a route, the first batch of a filter and of a validator, the factory of a filter."""
    for topic, configs in {
        "slow-filtered": {"lc_filters": "slow"},
        "slow-validated": {"lc_validators": "slow"},
    }.items():
        assert driven.create(topic, **configs) is None
    answers: dict[str, object] = {}

    def other(call: Callable[[Driven], object]) -> object:
        with WireClient(driven.broker.address) as wire:
            return call(Driven(driven.broker, wire))

    calls: dict[str, Callable[[Driven], object]] = {
        "route": lambda one: one.get("/plugins/slow/wait"),
        "filter": lambda one: one.produce("slow-filtered"),
        "validator": lambda one: one.produce("slow-validated"),
        "factory": lambda one: one.create("slow-made", lc_filters="slow-made"),
    }
    waiting = [
        threading.Thread(target=lambda name=name: answers.setdefault(name, other(calls[name])))
        for name in calls
    ]
    for thread in waiting:
        thread.start()
    until(lambda: all(name in driven.get("/plugins/slow/begun")[1] for name in calls), "all of them to wait")
    for _ in range(20):
        assert driven.is_well()
    assert driven.create("another") is None
    assert answers == {}
    driven.get("/plugins/slow/go")
    for thread in waiting:
        thread.join()
    assert answers == {"route": (200, "at last"), "filter": 0, "validator": 0, "factory": None}
