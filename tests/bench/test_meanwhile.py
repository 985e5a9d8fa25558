"""How long Kafka and `/health` take to answer while parts of a plugin hang: a route, the first batch of a filter and
of a validator, the factory of a filter."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from support.bad_plugins import SLOW
from support.broker_process import running_broker
from support.driven_plugins import Driven
from support.waiting import until
from support.wire_client import WireClient

ROUNDS = 200
LIMIT_S = 0.2


@pytest.mark.long
def test_kafka_and_health_are_answered_within_200_ms_while_plugins_hang(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "slow.py").write_text(SLOW)
    settings = {"lc.plugins.path": str(tmp_path / "plugins"), "auto.create.topics.enable": "false"}
    with running_broker(tmp_path, settings) as broker, WireClient(broker.address) as wire:
        driven = Driven(broker, wire)
        for topic, configs in {
            "f": {"lc_filters": "slow"},
            "v": {"lc_validators": "slow"},
            "well": {},
        }.items():
            assert driven.create(topic, **configs) is None
        calls: dict[str, Callable[[Driven], object]] = {
            "route": lambda one: one.get("/plugins/slow/wait"),
            "filter": lambda one: one.produce("f"),
            "validator": lambda one: one.produce("v"),
            "factory": lambda one: one.create("made", lc_filters="slow-made"),
        }

        def hang(call: Callable[[Driven], object]) -> None:
            with suppress(OSError), WireClient(broker.address) as own:
                call(Driven(broker, own))

        hanging = [threading.Thread(target=hang, args=(call,)) for call in calls.values()]
        for thread in hanging:
            thread.start()
        until(lambda: all(name in driven.get("/plugins/slow/begun")[1] for name in calls), "all to hang")
        assert driven.is_well()
        taken: dict[str, list[float]] = {"produce": [], "/health": []}
        for _ in range(ROUNDS):
            for name, call in (
                ("produce", lambda: driven.produce("well")),
                ("/health", lambda: driven.get("/health")),
            ):
                began = time.perf_counter()
                call()
                taken[name].append(time.perf_counter() - began)
        driven.get("/plugins/slow/go")
        for thread in hanging:
            thread.join()
    for name, times in taken.items():
        print(
            f"{name}: median {sorted(times)[ROUNDS // 2] * 1000:.1f} ms, slowest {max(times) * 1000:.1f} ms"
        )
        assert max(times) <= LIMIT_S
