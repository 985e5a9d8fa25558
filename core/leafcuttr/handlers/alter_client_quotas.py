"""AlterClientQuotas, versions 0 and 1: set and remove the quotas of users, client ids and addresses (KIP-546).

The words of the refusals are those of Kafka's controller. An entity with one refusal is left as it is; the others are
changed, all together, and connections that are open get their new quotas before the answer leaves. Unlike in Kafka a
quota that is not a number (NaN, infinity) is refused.
"""

import math
import socket
from collections.abc import Mapping, Sequence

import trio

from leafcuttr.errors import BrokerError, ErrorCode, InvalidRequest, StorageError
from leafcuttr.handlers.access import ALTER_CLUSTER_CONFIGS, refusal
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.quota_entities import (
    CLIENT_ID,
    ENTITY_TYPES,
    IP,
    LARGEST,
    OF_ADDRESSES,
    OF_CLIENTS,
    USER,
    QuotaEntity,
    entity_of,
    plain_address,
)
from leafcuttr.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)

_FRACTION = 1e-6
"""What Kafka takes for a whole number."""


async def handle(
    broker: Broker, context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    if refusal(broker, context, ALTER_CLUSTER_CONFIGS) is not None:
        return AlterClientQuotasResponse(
            entries=[
                EntryData(
                    error_code=ALTER_CLUSTER_CONFIGS.error,
                    error_message=ALTER_CLUSTER_CONFIGS.words,
                    entity=[
                        EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
                        for part in entry.entity
                    ],
                )
                for entry in request.entries
            ]
        )
    refused: dict[QuotaEntity, BrokerError | None] = {}
    changes: dict[QuotaEntity, Mapping[str, float | None]] = {}
    for entry in request.entries:
        entity = entity_of({part.entity_type: part.entity_name for part in entry.entity})
        if entity in refused:
            # The first of them is done all the same, as in Kafka.
            refused[entity] = InvalidRequest(f"Ignoring duplicate entity {_shown(entity)}")
            continue
        try:
            await _check_entity(entity)
            changes[entity] = _checked(entity, entry.ops)
        except BrokerError as error:
            refused[entity] = error
        else:
            refused[entity] = None
    if changes and not request.validate_only:
        try:
            await broker.quotas.alter(changes)
        except StorageError as error:
            refused |= dict.fromkeys(changes, error)
    return AlterClientQuotasResponse(entries=[_answer(entity, error) for entity, error in refused.items()])


async def _check_entity(entity: QuotaEntity) -> None:
    """Raises InvalidRequest."""
    if not entity:
        raise InvalidRequest("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            raise InvalidRequest(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidRequest(f"Empty {kind} not supported")
    parts = dict(entity)
    if IP in parts:
        if len(parts) > 1:
            raise InvalidRequest(
                "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
            )
        host = parts[IP]
        if host is not None and not await _is_host(host):
            raise InvalidRequest(f"{host} is not a valid IP or resolvable host.")


def _checked(entity: QuotaEntity, ops: Sequence[OpData]) -> dict[str, float | None]:
    """What is requested of the quotas of one entity. Raises InvalidRequest."""
    kinds = dict(entity)
    names = OF_CLIENTS if USER in kinds or CLIENT_ID in kinds else OF_ADDRESSES
    found: dict[str, float | None] = {}
    for one in ops:
        if one.key in found:
            raise InvalidRequest(f"Ignoring duplicate entity {_shown(entity)}")
        if not one.remove:
            _check_value(one.key, one.value, names)
        found[one.key] = None if one.remove else one.value
    return found


def _check_value(name: str, value: float, names: Sequence[str]) -> None:
    if name not in names:
        raise InvalidRequest(f"Invalid configuration key {name}")
    if not math.isfinite(value):
        raise InvalidRequest(f"Quota {name} must be a number")
    if value <= 0:
        raise InvalidRequest(f"Quota {name} must be greater than 0")
    largest = LARGEST[name]
    if largest is not None:
        if value > largest:
            kind = "an INT" if name in OF_ADDRESSES else "a LONG"
            raise InvalidRequest(f"Proposed value for {name} is too large for {kind}.")
        if value % 1 > _FRACTION:
            raise InvalidRequest(f"{name} cannot be a fractional value.")


async def _is_host(name: str) -> bool:
    """Whether it is an IP address, or a name that has one."""
    if plain_address(name) is not None:
        return True
    try:
        await trio.to_thread.run_sync(socket.getaddrinfo, name, None, abandon_on_cancel=True)
    except (OSError, UnicodeError, RuntimeError):
        return False
    return True


def _shown(entity: QuotaEntity) -> str:
    """As Kafka shows it."""
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _answer(entity: QuotaEntity, error: BrokerError | None) -> EntryData:
    return EntryData(
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
    )
