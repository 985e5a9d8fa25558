"""DescribeClientQuotas, versions 0 and 1: the quotas of the entities that a filter names (KIP-546).

A component of the filter is a type with a name, with the default, or with any of the two; without components it is all
entities. `strict` leaves out those that have other types too. The words of the refusals are Kafka's.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from leafcuttr.errors import BrokerError, ErrorCode, InvalidRequest, UnsupportedVersion
from leafcuttr.handlers.access import DESCRIBE_CLUSTER_CONFIGS, refusal
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.quota_entities import CLIENT_ID, ENTITY_TYPES, IP, USER, QuotaEntity
from leafcuttr.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

_EXACT: Final = 0
_DEFAULT: Final = 1
_SPECIFIED: Final = 2
_NAMES: Final = {
    _EXACT: "MATCH_TYPE_EXACT",
    _DEFAULT: "MATCH_TYPE_DEFAULT",
    _SPECIFIED: "MATCH_TYPE_SPECIFIED",
}


class _Filter(NamedTuple):
    """`named` are parts that an entity has to have, `any_of` types of which it has to have one."""

    named: dict[str, str | None]
    any_of: set[str]
    strict: bool

    def fits(self, entity: QuotaEntity) -> bool:
        parts = dict(entity)
        if self.strict and len(parts) != len(self.named) + len(self.any_of):
            return False
        return self.any_of <= parts.keys() and self.named.items() <= parts.items()


async def handle(
    broker: Broker, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    if refusal(broker, context, DESCRIBE_CLUSTER_CONFIGS) is not None:
        return DescribeClientQuotasResponse(
            error_code=DESCRIBE_CLUSTER_CONFIGS.error, error_message=None, entries=None
        )
    try:
        wanted = _filter(request.components, request.strict)
    except BrokerError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    entries = [
        EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[ValueData(key=key, value=value) for key, value in sorted(values.items())],
        )
        async for entity, values in Pace().over(list(broker.quotas.entries().items()))
        if wanted.fits(entity)
    ]
    return DescribeClientQuotasResponse(error_code=ErrorCode.NONE, error_message="", entries=entries)


def _filter(components: Sequence[ComponentData], strict: bool) -> _Filter:
    """Raises InvalidRequest, UnsupportedVersion."""
    found = _Filter({}, set(), strict)
    for one in components:
        kind = one.entity_type
        if not kind:
            raise InvalidRequest("Invalid empty entity type.")
        if kind in found.named or kind in found.any_of:
            raise InvalidRequest(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in ENTITY_TYPES:
            raise UnsupportedVersion(f"Unsupported entity type {kind}")
        if one.match_type not in _NAMES:
            raise InvalidRequest(f"Unknown match type {one.match_type}")
        if one.match_type == _EXACT and one.match is None:
            raise InvalidRequest("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if one.match_type != _EXACT and one.match is not None:
            name = _NAMES[one.match_type]
            raise InvalidRequest(f"Request specified {name}, but also specified a match string.")
        if one.match_type == _SPECIFIED:
            found.any_of.add(kind)
        else:
            found.named[kind] = one.match
    kinds = found.named.keys() | found.any_of
    if IP in kinds and not kinds.isdisjoint((USER, CLIENT_ID)):
        raise InvalidRequest(
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component."
        )
    return found
