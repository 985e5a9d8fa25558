"""The clusters that a process of Spark has open."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from leafcuttr_sdk.errors import PluginError
from leafcuttr_spark.spark import peers
from leafcuttr_spark.spark.peers import peer_of
from support.live_broker import LiveBroker


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while peers._open:
        peers._open.popitem()[1].manager.__exit__(None, None, None)


def properties(address: str, number: int = 0) -> dict[str, str]:
    return {"bootstrap.servers": address, "client.id": f"task-{number}"}


def test_one_for_the_same_properties(live: LiveBroker) -> None:
    first = peer_of(properties(live.address))
    assert peer_of(dict(reversed(properties(live.address).items()))) is first
    assert peer_of(properties(live.address, 1)) is not first
    assert first.cluster_id()


def test_the_one_that_was_used_longest_ago_is_closed(live: LiveBroker) -> None:
    first, second = peer_of(properties(live.address)), peer_of(properties(live.address, 1))
    for number in range(2, peers._MOST):
        peer_of(properties(live.address, number))
    assert peer_of(properties(live.address)) is first
    peer_of(properties(live.address, 99))
    assert peer_of(properties(live.address)) is first
    assert first.cluster_id()
    with pytest.raises(RuntimeError, match="closed"):
        second.cluster_id()


def test_a_forked_process_opens_its_own(live: LiveBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    first = peer_of(properties(live.address))
    parents = dict(peers._open)
    monkeypatch.setattr(peers, "getpid", lambda: 1)
    second = peer_of(properties(live.address))
    assert second is not first
    assert first.cluster_id(), "it is left as it is"
    for opened in parents.values():
        opened.manager.__exit__(None, None, None)


def test_the_end_of_the_process_closes_them(live: LiveBroker) -> None:
    program = (
        "import json, sys\n"
        "from leafcuttr_spark.spark.peers import peer_of\n"
        "print(peer_of(json.loads(sys.argv[1])).cluster_id())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(properties(live.address))],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"{peer_of(properties(live.address)).cluster_id()}\n",
        "",
    )


def test_properties_that_cannot_be_used_are_said() -> None:
    with pytest.raises(PluginError):
        peer_of({"bootstrap.servers": "here:x"})
