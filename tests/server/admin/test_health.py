"""Health: what is required for ready, what only degrades, and that the table may be added to."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.server.admin.endpoint import AdminEndpoint
from leafcuttr.server.admin.health import FINE, HealthTable
from leafcuttr.server.admin.router import Request
from leafcuttr.server.listener import Connections
from leafcuttr.state.broker import Broker
from leafcuttr_sdk.admin import Finding, HealthCheck
from support.peer import connect, metadata_request
from support.waiting import eventually

Serve = Callable[..., Awaitable[Broker]]


def endpoint(broker: Broker) -> AdminEndpoint:
    return AdminEndpoint(broker, Connections(broker))


async def look(admin: AdminEndpoint, path: str) -> tuple[int, Any]:
    answer = await admin.router.answer(Request("GET", path))
    assert isinstance(answer.body, bytes)
    return answer.status, json.loads(answer.body)


async def test_a_broker_that_is_well(serve: Serve) -> None:
    broker = await serve()
    admin = endpoint(broker)

    async def ready() -> tuple[int, Any] | None:
        found = await look(admin, "/health/ready")
        return found if found[0] == 200 else None

    assert await eventually(ready, "a broker that is ready") == (200, {"status": "ok"})
    assert await look(admin, "/health/live") == (200, {"status": "ok"})
    status, body = await look(admin, "/health")
    assert (status, body["status"]) == (200, "ok")
    assert body["cluster_id"] == broker.cluster_id
    assert body["listeners"] == {"PLAINTEXT": broker.listeners[0].advertised}
    assert all(check["ok"] for check in body["checks"].values())


async def test_a_full_disk_degrades_and_leaves_it_ready(serve: Serve) -> None:
    broker = await serve()
    admin = endpoint(broker)
    broker.logs.directories[0]._resources.refusal = "/data has 5 bytes free"
    assert (await look(admin, "/health/ready"))[0] == 200
    status, body = await look(admin, "/health")
    assert (status, body["status"]) == (200, "degraded")
    assert body["checks"]["disk"] == {
        "ok": False,
        "required": False,
        "looks_at": "the disk has free space for what clients produce",
        "detail": "clients may not produce: /data has 5 bytes free",
    }


async def test_offline_partitions_are_named_up_to_a_few(serve: Serve) -> None:
    broker = await serve({"num.partitions": "7"})
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
    for log in broker.logs.logs.values():
        log.take_offline("tried out")
    body = (await look(endpoint(broker), "/health"))[1]
    assert body["status"] == "degraded"
    assert body["checks"]["partitions"]["detail"] == "offline: t-0, t-1, t-2, t-3, t-4 and 2 more"


async def test_checks_of_plugins(serve: Serve) -> None:
    broker = await serve()
    admin = endpoint(broker)
    found = [FINE]
    admin.health.add(HealthCheck("mine", "my service runs", lambda: found[0], required=True))
    with pytest.raises(ValueError, match="'mine' already"):
        admin.health.add(HealthCheck("mine", "again", lambda: FINE))
    assert (await look(admin, "/health/ready"))[0] == 200
    found[0] = Finding(False, "it is starting")
    assert await look(admin, "/health/ready") == (503, {"status": "not ready", "failing": ["mine"]})
    status, body = await look(admin, "/health")
    assert (status, body["status"], body["checks"]["mine"]["detail"]) == (503, "not ready", "it is starting")
    with pytest.raises(ValueError, match="answered already"):
        admin.router.add("/metrics", admin.router.answer, "taken")
    with pytest.raises(ValueError, match="no path"):
        admin.router.add("mine", admin.router.answer, "no slash")


def test_a_check_that_raises_is_not_fine() -> None:
    def broken() -> Finding:
        raise RuntimeError("no such thing")

    table = HealthTable()
    table.add(HealthCheck("broken", "breaks", broken, required=True))
    assert list(table.findings().values()) == [Finding(False, "the check failed: no such thing")]
    assert table.missing() == ["broken"]


def test_checks_that_come_and_go() -> None:
    table, there = HealthTable(), list[HealthCheck]()
    table.add(HealthCheck("kept", "it is", lambda: Finding(True)))
    table.add_passing(lambda: there)
    assert [check.name for check in table.findings()] == ["kept"]
    there.append(HealthCheck("passing", "it runs", lambda: Finding(False, "not now")))
    assert {check.name: finding.fine for check, finding in table.findings().items()} == {
        "kept": True,
        "passing": False,
    }
    assert table.missing() == []


async def test_not_ready_while_groups_are_read(serve: Serve, tmp_path: Path) -> None:
    broker = await serve()
    admin = endpoint(broker)
    broker.groups._table.loading = {3}
    status, body = await look(admin, "/health/ready")
    assert (status, body["failing"]) == (503, ["groups"])
    broker.groups._table.loading = set()
