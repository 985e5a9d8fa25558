"""`leafcuttr cluster` against a real broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]
Fill = Callable[..., None]


def test_the_brokers_and_the_controller(run: Run, address: str) -> None:
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
