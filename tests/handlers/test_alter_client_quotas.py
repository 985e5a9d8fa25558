"""Quotas are set and removed, in the words of Kafka's controller."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode, StorageError
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.quota_entities import entity_of
from leafcuttr.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)

ALICE = {"user": "alice"}
P, C, R, M, N = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)


def entry(parts: dict[str, str | None], *ops: tuple[str, float | None]) -> RequestEntryData:
    """None removes a quota."""
    return RequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )


async def alter(send: Any, *entries: RequestEntryData, validate_only: bool = False) -> list[Any]:
    answer = await send(AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only), 1)
    return [
        (
            {part.entity_type: part.entity_name for part in one.entity},
            one.error_code,
            one.error_message,
        )
        for one in answer.entries
    ]


async def test_quotas_come_and_go(send: Any, broker: Broker) -> None:
    both: dict[str, str | None] = {"user": None, "client-id": "c"}
    assert await alter(send, entry(ALICE, (P, 1000), (R, 12.5)), entry(both, (M, 0.5))) == [
        (ALICE, 0, None),
        (both, 0, None),
    ]
    assert broker.quotas.entries() == {
        entity_of(dict(ALICE)): {P: 1000, R: 12.5},
        entity_of(both): {M: 0.5},
    }
    assert await alter(send, entry(ALICE, (P, None), (C, 7)), entry(both, (M, None), (P, None))) == [
        (ALICE, 0, None),
        (both, 0, None),
    ]
    assert broker.quotas.entries() == {entity_of(dict(ALICE)): {C: 7, R: 12.5}}


async def test_nothing_is_changed_by_a_request_that_only_asks(send: Any, broker: Broker) -> None:
    assert await alter(send, entry(ALICE, (P, 1000)), validate_only=True) == [(ALICE, 0, None)]
    assert await alter(send, entry(ALICE, ("x", 1)), validate_only=True) == [
        (ALICE, ErrorCode.INVALID_REQUEST, "Invalid configuration key x")
    ]
    assert broker.quotas.entries() == {}


@pytest.mark.parametrize(
    ("parts", "ops", "text"),
    [
        ({}, [(P, 1)], "Invalid empty client quota entity"),
        ({"host": "x"}, [(P, 1)], "Unhandled client quota entity type: host"),
        ({"user": ""}, [(P, 1)], "Empty user not supported"),
        ({"client-id": ""}, [(P, 1)], "Empty client-id not supported"),
        (
            {"ip": "10.0.0.1", "user": "u"},
            [(N, 1)],
            "Invalid quota entity combination, IP entity should not be combined with User or ClientId",
        ),
        ({"user": "u"}, [(N, 1)], f"Invalid configuration key {N}"),
        ({"ip": None}, [(P, 1)], f"Invalid configuration key {P}"),
        ({"user": "u"}, [("x", 1)], "Invalid configuration key x"),
        ({"user": "u"}, [(P, 0)], f"Quota {P} must be greater than 0"),
        ({"user": "u"}, [(R, -1)], f"Quota {R} must be greater than 0"),
        ({"user": "u"}, [(R, math.nan)], f"Quota {R} must be a number"),
        ({"user": "u"}, [(M, math.inf)], f"Quota {M} must be a number"),
        ({"user": "u"}, [(P, 1.5)], f"{P} cannot be a fractional value."),
        ({"ip": "10.0.0.1"}, [(N, 1.5)], f"{N} cannot be a fractional value."),
        ({"user": "u"}, [(C, 1e19)], f"Proposed value for {C} is too large for a LONG."),
        ({"ip": "10.0.0.1"}, [(N, 2.0**31)], f"Proposed value for {N} is too large for an INT."),
    ],
)
async def test_what_is_refused(
    send: Any, broker: Broker, parts: dict[str, str | None], ops: list[Any], text: str
) -> None:
    """The others of the request are done."""
    other = {"user": "other"}
    answer = await alter(send, entry(parts, *ops), entry(other, (P, 5)))
    assert answer == [(parts, ErrorCode.INVALID_REQUEST, text), (other, 0, None)]
    assert list(broker.quotas.entries()) == [entity_of(dict(other))]


async def test_values_at_the_ends(send: Any, broker: Broker) -> None:
    values = [(P, 2.0**63), (C, 1.0), (R, 1e-9), (M, 1e300)]
    assert await alter(send, entry(ALICE, *values)) == [(ALICE, 0, None)]
    assert broker.quotas.entries()[entity_of(dict(ALICE))] == dict(values)
    limits = broker.quotas.limits_of("alice", None)
    assert limits is not None and limits.fetch_wait_s(0) == 0


async def test_what_is_there_twice(send: Any, broker: Broker) -> None:
    ignored = "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    answer = await alter(send, entry(ALICE, (P, 1), (P, 2)))
    assert answer == [(ALICE, ErrorCode.INVALID_REQUEST, ignored)]
    assert broker.quotas.entries() == {}
    answer = await alter(send, entry(ALICE, (P, 1)), entry(ALICE, (P, 2)))
    assert answer == [(ALICE, ErrorCode.INVALID_REQUEST, ignored)]
    assert broker.quotas.entries() == {entity_of(dict(ALICE)): {P: 1}}, "the first is done, as in Kafka"


async def test_a_host_may_be_named(send: Any, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(name: str, *_: object, **__: object) -> list[Any]:
        if name != "edge.example":
            raise socket.gaierror("no such host")
        return [(2, 1, 6, "", ("10.0.0.9", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert await alter(send, entry({"ip": "edge.example"}, (N, 5))) == [({"ip": "edge.example"}, 0, None)]
    assert await alter(send, entry({"ip": "nobody.example"}, (N, 5))) == [
        (
            {"ip": "nobody.example"},
            ErrorCode.INVALID_REQUEST,
            "nobody.example is not a valid IP or resolvable host.",
        )
    ]
    assert broker.quotas.named_hosts == ("edge.example",)


async def test_what_the_disk_refuses(send: Any, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise StorageError("cannot write metadata.sqlite")

    monkeypatch.setattr(broker.metadata, "set_quotas", refuse)
    answer = await alter(send, entry(ALICE, (P, 1)), entry({"user": ""}, (P, 1)))
    assert answer == [
        (ALICE, ErrorCode.KAFKA_STORAGE_ERROR, "cannot write metadata.sqlite"),
        ({"user": ""}, ErrorCode.INVALID_REQUEST, "Empty user not supported"),
    ]
    assert broker.quotas.entries() == {}


async def test_quotas_are_there_after_a_restart(
    send: Any, broker: Broker, open_test_broker: Callable[..., Broker]
) -> None:
    await alter(send, entry(ALICE, (P, 1000)))
    assert open_test_broker().quotas.entries() == {entity_of(dict(ALICE)): {P: 1000}}
