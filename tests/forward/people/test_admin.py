"""A broker that forwards, on its admin port: paths, health, metrics; and `leafcuttr flows` for it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import leafcuttr_forward
from forward.clusters import create, produce, read
from forward.mm2.test_service import commit
from leafcuttr_sdk.testing import run_command
from support.broker_process import BrokerProcess, running_broker
from support.live_broker import LiveBroker
from support.waiting import free_port, until

FLOWS = next(each for each in leafcuttr_forward.leafcuttr_register_cli_commands() if each.name == "flows")


def get(broker: BrokerProcess, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://{broker.about['metrics']}{path}", timeout=30) as answer:
            text: str = answer.read().decode()
            return text
    except urllib.error.HTTPError as error:
        return error.read().decode()


def flow_of(broker: BrokerProcess) -> Any:
    return next(
        (row for row in json.loads(get(broker, "/plugins/forward/flows")) if row["written"] >= 10), None
    )


@pytest.mark.long
def test_what_a_broker_that_forwards_shows(tmp_path: Path, hub: LiveBroker) -> None:
    here = f"127.0.0.1:{free_port()}"
    file = tmp_path / "mirror.properties"
    file.write_text(
        f"clusters=edge,hub\nedge.bootstrap.servers={here}\nhub.bootstrap.servers={hub.address}\n"
        "edge->hub.enabled=true\nedge->hub.topics=orders\nreplication.factor=1\n"
    )
    with running_broker(tmp_path / "first", {"listeners": f"PLAINTEXT://{here}"}) as broker:
        create(here, "orders")
        produce(here, "orders", [str(each) for each in range(10)])
    settings = {
        "listeners": f"PLAINTEXT://{here}",
        "lc.topic.forward.config": str(file),
        "log.dirs": str(broker.data),
    }
    with running_broker(tmp_path / "second", settings) as broker:
        until(lambda: (flow_of(broker) or {}).get("lag_records") == 0, "the records are copied")
        row = flow_of(broker)
        name = row["flow"]
        assert (row["source"], row["target"], row["lag_records"]) == ("this broker", hub.address, 0)
        admin = ("--admin-server", str(broker.about["metrics"]), "--bootstrap-server", here)
        described = run_command(FLOWS, "describe", name, *admin, plugin=leafcuttr_forward)
        assert f"flow: {name}\nstate: running\nsource: this broker\n" in described.out
        listed = run_command(FLOWS, "list", "--json", *admin, plugin=leafcuttr_forward)
        assert name in [each["flow"] for each in json.loads(listed.out)]
        lag = json.loads(run_command(FLOWS, "lag", name, "--json", *admin, plugin=leafcuttr_forward).out)
        rows = {each["topic"]: (each["position"], each["end"], each["lag_records"]) for each in lag}
        assert rows["orders"] == (10, 10, 0)
        # The group is one of this broker, whose address --bootstrap-server has.
        commit(here, "billing", "orders", 4)
        words = ("translate", "billing", "--json")
        (moved,) = json.loads(run_command(FLOWS, *words, *admin, plugin=leafcuttr_forward).out)
        there = {each.value(): each.offset() for each in read(hub.address, "edge.orders")}
        assert (moved["target_topic"], moved["target_offset"]) == ("edge.orders", there[b"4"])
        metrics = get(broker, "/metrics")
        labels = f'{{flow="{name}",partition="0",topic="orders"}}'
        assert f"leafcuttr_forward_written_records_total{labels} 10.0" in metrics
        assert f'leafcuttr_forward_up{{flow="{name}"}} 1.0' in metrics
        health = json.loads(get(broker, "/health"))
        found = [each for each in health["checks"] if "forward:flows" in str(each)]
        assert found, health
        # Requests reach it by the target.
        asked = run_command(FLOWS, "pause", name, "--bootstrap-server", hub.address, plugin=leafcuttr_forward)
        assert asked.status == 0, asked.err
        until(lambda: flow_of(broker)["state"] == "paused", "it is paused")
        none = run_command(FLOWS, "describe", "none", *admin, plugin=leafcuttr_forward)
        assert (none.status, none.err) == (1, "leafcuttr: no flow has the name none\n")


def test_a_broker_that_forwards_nothing(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        admin = ("--admin-server", str(broker.about["metrics"]))
        done = run_command(FLOWS, "list", *admin, plugin=leafcuttr_forward)
    assert done.status == 1
    assert done.err == "leafcuttr: this broker forwards nothing (lc.topic.forward.config)\n"
