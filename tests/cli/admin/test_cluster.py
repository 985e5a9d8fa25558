"""`leafcuttr cluster` and `leafcuttr logdirs` against a real broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]
Fill = Callable[..., None]


def test_who_the_brokers_are(run: Run, address: str) -> None:
    found = run("cluster", "brokers", "--json").json
    host, _, port = address.rpartition(":")
    assert found["controller"] == 1
    (broker,) = found["brokers"]
    assert (broker["broker"], broker["port"], broker["fenced"]) == (1, int(port), False)
    assert run("cluster", "id").out == f"{found['cluster_id']}\n"
    assert len(found["cluster_id"]) == 22
    row = run("cluster", "brokers").out.splitlines()[1].split()
    assert row == ["1", broker["host"], port, "-", "yes", "active"]
    # The one that answers is taken.
    assert run("cluster", "id", at=f"{host}:1,{address}").out == f"{found['cluster_id']}\n"


def test_features_and_versions(run: Run) -> None:
    features = {each["feature"]: each for each in run("cluster", "features", "--json").json["features"]}
    assert features["transaction.version"] == {
        "feature": "transaction.version",
        "level": 2,
        "min": 0,
        "max": 2,
    }
    assert "transaction.version" in run("cluster", "features").out
    versions = {each["api"]: each for each in run("cluster", "api-versions", "--json").json}
    assert versions["DescribeLogDirs"] == {
        "broker": 1,
        "key": 35,
        "api": "DescribeLogDirs",
        "min": 1,
        "max": 5,
        "used": 5,
    }
    assert all(versions)
    lines = run("cluster", "api-versions").out.splitlines()
    assert ["1", "18", "ApiVersions", "0-4", "4"] in [line.split() for line in lines]


def test_what_the_log_directories_hold(run: Run, topic: str, fill: Fill) -> None:
    run("topics", "create", topic, "-p", "3")
    fill(topic, 10)
    (directory,) = run("logdirs", "--json").json
    assert directory["error"] is None
    assert 0 < directory["free_bytes"] < directory["total_bytes"]
    parts = {(part["topic"], part["partition"]): part["bytes"] for part in directory["partitions"]}
    assert parts[topic, 0] > 0
    assert parts[topic, 1] == parts[topic, 2] == 0
    (only,) = run("logdirs", f"{topic}:0,2", "--broker", "1", "--json").json
    assert [(part["topic"], part["partition"]) for part in only["partitions"]] == [(topic, 0), (topic, 2)]
    head, row = run("logdirs").out.splitlines()
    assert head.split() == ["BROKER", "DIRECTORY", "PARTITIONS", "SIZE", "DISK", "FREE"]
    assert row.split()[:2] == ["1", directory["directory"]]
    rows = run("logdirs", topic).out.splitlines()[1:]
    assert [line.split()[2:4] for line in rows] == [[topic, "0"], [topic, "1"], [topic, "2"]]
    assert all(line.endswith("current") for line in rows)
    missing = run("logdirs", "no-such-topic")
    assert (missing.status, missing.err) == (1, "leafcuttr: there is no topic no-such-topic\n")
    missing = run("logdirs", "-B", "9")
    assert (missing.status, missing.err) == (1, "leafcuttr: there is no broker 9; there are 1\n")
