"""What kaf-relay and Kafka Topic Mirror say of themselves, line by line: a test for each, which does all of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from functools import partial
from pathlib import Path

import pytest
import trio

import leafcuttr_forward
from forward.clusters import create, produce, until, values
from forward.conftest import MakeRun, started
from forward.nodes import nodes, write
from leafcuttr_forward.relay.keys import MECHANISMS
from leafcuttr_forward.relay.pool import Health
from leafcuttr_forward.relay.running import Run
from leafcuttr_forward.relay.spec import RelayOptions
from leafcuttr_sdk.testing import run_command
from support.broker_process import clean_environ
from support.live_broker import LiveBroker
from support.secured_broker import NAME, PASSWORD, secured_broker
from support.waiting import free_port
from support.waiting import until as until_then

RELAY, MIRROR, _ = leafcuttr_forward.leafcuttr_register_cli_commands()


def has_copied(run: Run, count: int) -> bool:
    return run.counters.total == count


def is_read(run: Run, index: int) -> bool:
    return run.pool.current == index


async def get(run: Run, path: str) -> str:
    def fetch() -> str:
        host, port = run.addresses[0]
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=30) as answer:
            text: str = answer.read().decode()
            return text

    return await trio.to_thread.run_sync(fetch)


@pytest.mark.long
async def test_kaf_relay(tmp_path: Path, make_run: MakeRun, hub: LiveBroker) -> None:
    topic, copy = "topicA", "machineX_topicA"
    async with nodes(tmp_path, 3, topic) as found:
        run = make_run(
            [each.address for each in found],
            hub.address,
            {topic: copy},
            pool='request_timeout = "500ms"\noffset_lag_threshold = 20',
            mode="failover",
        )
        async with started(run):
            # Topic forwarding, to a topic of another name; offset tracking: nothing is copied twice below.
            await until(partial(has_copied, run, 200), "the topic is forwarded")
            # Metrics.
            lines = (await get(run, "/metrics")).splitlines()
            for number in ("0", "1"):
                labels = f'destination="{copy}",partition="{number}",source="{topic}"'
                assert f"kafka_relay_msg_count{{{labels}}} 100.0" in lines
            # Failover in a round-robin fashion on failure of the current node; background health checks.
            found[0].way.refuses = True
            found[0].way.cut()
            await until(partial(is_read, run, 1), "the next node is read")
            for node in found:
                await write(node, topic, 100, 150)
            await until(partial(has_copied, run, 300), "what came is copied from there")
            assert run.pool.sources[0].health is Health.DOWN
            # Topic lag failover.
            await write(found[2], topic, 150, 200)
            await until(partial(is_read, run, 2), "the node that is ahead is read")
            await until(partial(has_copied, run, 400), "what it has is copied")
        for partition in (0, 1):
            assert values_of(hub, copy, partition) == [f"{partition}:{number}" for number in range(200)]
        # Stop at end, with a filter that is a plugin of a person's.
        (tmp_path / "allowed.py").write_text("def IsAllowed(msg):\n    return msg.endswith(b'9')\n")
        file = tmp_path / "single.toml"
        file.write_text(
            f'[app]\nmetrics_server_addr = ""\n[topics]\n{topic} = "filtered:0"\n[[sources]]\n'
            f'servers = ["{found[2].direct}"]\n[target]\nservers = ["{hub.address}"]\n'
        )
        words = ("--config", str(file), "--mode", "single", "--stop-at-end", "--json")
        done = await trio.to_thread.run_sync(
            lambda: subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "leafcuttr",
                    "relay",
                    *words,
                    "--filter",
                    str(tmp_path / "allowed.py"),
                ],
                env=clean_environ(),
                check=False,
                capture_output=True,
                text=True,
            )
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert (told["read"], told["written"], told["dropped"]) == (400, 40, 360)
    assert sorted(values_of(hub, "filtered", 0)) == sorted(
        f"{partition}:{number}" for partition in (0, 1) for number in range(9, 200, 10)
    )
    # Authentication, at both ends; with a real Kafka in relay/test_with_kafka.py.
    with secured_broker(tmp_path / "secured") as secured:
        address, tested = secured.addresses["SASL_PLAINTEXT"], secured.addresses["PLAINTEXT"]
        await trio.to_thread.run_sync(create, tested, topic)
        await trio.to_thread.run_sync(produce, tested, topic, ["of alice"])
        for mechanism in MECHANISMS:
            keys = f'enable_auth = true\nsasl_mechanism = "{mechanism}"\nusername = "{NAME}"\npassword = "{PASSWORD}"'
            options = RelayOptions(name=f"by-{mechanism}")
            run = make_run(
                [address],
                address,
                {topic: f"by-{mechanism}"},
                more=keys,
                more_of_source=keys,
                options=options,
                stop_at_end=True,
            )
            with trio.fail_after(60):
                await run.run()
            assert (run.status, run.why) == (0, None)
            assert await trio.to_thread.run_sync(values, tested, f"by-{mechanism}") == ["of alice"]


def values_of(hub: LiveBroker, topic: str, partition: int) -> list[str]:
    return values(hub.address, topic, partition)


@pytest.mark.long
def test_kafka_topic_mirror(tmp_path: Path, edge: LiveBroker, hub: LiveBroker) -> None:
    create(edge.address, "ktm", 3)
    expected = [[f"{partition}:{number}" for number in range(3000)] for partition in range(3)]
    for partition in range(3):
        produce(edge.address, "ktm", expected[partition], partition)
    # Topic to topic within a cluster; cluster to cluster.
    done = run_command(MIRROR, f"{edge.address}/ktm", f"{edge.address}/ktm-again", "--stop-at-end")
    assert done.status == 0, done.err
    done = run_command(MIRROR, edge.address, hub.address, "--topics", "ktm-again", "--stop-at-end")
    assert done.status == 0, done.err
    for partition in range(3):
        assert values(edge.address, "ktm-again", partition) == expected[partition]
        assert values(hub.address, "ktm-again", partition) == expected[partition]
    # No loss: what is committed at the source is at the target, when the process is killed too.
    metrics = f"127.0.0.1:{free_port()}"
    ends = (f"{edge.address}/ktm", f"{hub.address}/ktm")
    words = ["mirror", *ends, "--name", "ktm", "--at-least-once", "--metrics", metrics]
    program = [sys.executable, "-m", "leafcuttr", *words]
    # What it finds first is more than it may copy in the next minutes.
    with subprocess.Popen(
        [*program, "--throttle", "100"], env=clean_environ(), stderr=subprocess.DEVNULL
    ) as process:
        try:
            until_then(lambda: copied(hub, "ktm") > 500, "some are copied")
            # Messages consumed and produced over time are counted, in Prometheus's format.
            for kind in ("read", "written"):
                name = f"leafcuttr_forward_{kind}_records_total"
                until_then(partial(is_counted, metrics, name, "ktm"), name)
            for partition in range(3):
                more = [f"{partition}:{number}" for number in range(3000, 4000)]
                produce(edge.address, "ktm", more, partition)
                expected[partition] += more
        finally:
            os.kill(process.pid, signal.SIGKILL)
    done_again = subprocess.run(
        [*program, "--stop-at-end", "--json"],
        env=clean_environ(),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done_again.returncode == 0, done_again.stderr
    for partition in range(3):
        found = values(hub.address, "ktm", partition)
        # In order, once the last ones that came again are left out.
        assert list(dict.fromkeys(found)) == expected[partition]
    # They are counted at the end too.
    told = json.loads(done_again.stdout)
    assert told["read"] == told["written"] >= 3000


def is_counted(address: str, name: str, flow: str) -> bool:
    """Whether it is above 0, over the partitions."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return any(
        float(line.split()[1]) > 0 for line in lines if line.startswith(f'{name}{{flow="{flow}",partition="')
    )


def copied(hub: LiveBroker, topic: str) -> int:
    logs = hub.broker.logs.logs
    return hub.call(lambda: sum(log.log_end_offset for name, log in logs.items() if name.topic == topic))
