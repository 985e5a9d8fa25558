"""Quotas are described by a filter, in the words of Kafka's brokers."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.quota_entities import entity_of
from leafcuttr.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

EXACT, DEFAULT, SPECIFIED = range(3)
KINDS = ("user", "client-id", "ip")


def component(kind: str, match_type: int, match: str | None = None) -> ComponentData:
    return ComponentData(entity_type=kind, match_type=match_type, match=match)


async def described(send: Any, *components: ComponentData, strict: bool = False) -> Any:
    answer = await send(DescribeClientQuotasRequest(components=list(components), strict=strict), 1)
    if answer.error_code:
        assert answer.entries is None
        return answer.error_code, answer.error_message
    assert answer.error_message == ""  # as Kafka has it
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            each.key: each.value for each in entry.values
        }
        for entry in answer.entries
    }


@pytest.fixture
async def filled(broker: Broker) -> dict[str, Any]:
    """Entities by a short name."""
    entities = {
        "u": entity_of({"user": "u"}),
        "u*": entity_of({"user": None}),
        "c": entity_of({"client-id": "c"}),
        "uc": entity_of({"user": "u", "client-id": "c"}),
        "uc*": entity_of({"user": "u", "client-id": None}),
        "ip": entity_of({"ip": "10.0.0.1"}),
        "ip*": entity_of({"ip": None}),
    }
    await broker.quotas.alter(
        {
            entity: {"connection_creation_rate" if name.startswith("ip") else "producer_byte_rate": 5.0}
            for name, entity in entities.items()
        }
    )
    return entities


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, "u u* c uc uc* ip ip*"),
        ([], True, ""),
        ([("user", EXACT, "u")], False, "u uc uc*"),
        ([("user", EXACT, "u")], True, "u"),
        ([("user", EXACT, "nobody")], False, ""),
        ([("user", DEFAULT)], False, "u*"),
        ([("user", SPECIFIED)], True, "u u*"),
        ([("client-id", SPECIFIED)], False, "c uc uc*"),
        ([("user", EXACT, "u"), ("client-id", SPECIFIED)], True, "uc uc*"),
        ([("user", EXACT, "u"), ("client-id", DEFAULT)], True, "uc*"),
        ([("ip", SPECIFIED)], True, "ip ip*"),
        ([("ip", EXACT, "10.0.0.1")], True, "ip"),
    ],
)
async def test_what_a_filter_finds(
    send: Any, filled: dict[str, Any], components: list[Any], strict: bool, found: str
) -> None:
    answer = await described(send, *(component(*each) for each in components), strict=strict)
    assert set(answer) == {filled[name] for name in found.split()}


async def test_the_values_of_an_entity(send: Any, broker: Broker) -> None:
    values = {"producer_byte_rate": 1.5, "request_percentage": 200.0}
    await broker.quotas.alter({entity_of({"user": "u"}): values})
    assert await described(send) == {(("user", "u"),): values}


@pytest.mark.parametrize(
    ("components", "code", "text"),
    [
        ([("", EXACT, "u")], ErrorCode.INVALID_REQUEST, "Invalid empty entity type."),
        (
            [("user", EXACT, "u"), ("user", SPECIFIED)],
            ErrorCode.INVALID_REQUEST,
            "Entity type user cannot appear more than once in the filter.",
        ),
        ([("host", EXACT, "u")], ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type host"),
        ([("user", 3, "u")], ErrorCode.INVALID_REQUEST, "Unknown match type 3"),
        (
            [("user", EXACT, None)],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            [("user", DEFAULT, "u")],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            [("user", SPECIFIED, "u")],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        (
            [("ip", SPECIFIED), ("user", SPECIFIED)],
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component.",
        ),
    ],
)
async def test_what_is_refused(send: Any, components: list[Any], code: ErrorCode, text: str) -> None:
    assert await described(send, *(component(*each) for each in components)) == (code, text)
