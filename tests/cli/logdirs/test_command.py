"""`leafcuttr logdirs` against a real broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]
Fill = Callable[..., None]


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
