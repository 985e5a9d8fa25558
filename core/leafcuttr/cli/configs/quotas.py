"""The quotas of users, client ids and addresses: read and changed through our own client; librdkafka has none."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.target import Target
from leafcuttr.cli.common.wire_client.cluster import ClusterClient
from leafcuttr.cli.configs.entity_types import ENTITY_TYPES, EntityType
from leafcuttr.cli.configs.entries import Change, ConfigOperation

DEFAULT: Final = "<default>"
_EXACT, _DEFAULT, _ANY = 0, 1, 2


class Entity(NamedTuple):
    """The user, client or address that has a quota; with `other`, an entity type, the quota is for the two together. A
    name that is None is the default.
    """

    name: str | None
    other: str = ""
    other_name: str | None = None

    def __str__(self) -> str:
        own = DEFAULT if self.name is None else self.name
        return f"{own}, {self.other} {self.other_name or DEFAULT}" if self.other else own


def describe(
    target: Target, entity_type: EntityType, wanted: Sequence[str | None]
) -> dict[Entity, dict[str, float]]:
    """The quotas of these entities, or of all of the type; those together with another type too. Raises Failure."""
    from leafcuttr.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

    components = [
        ComponentData(
            entity_type=entity_type.quota, match_type=_DEFAULT if name is None else _EXACT, match=name
        )
        for name in wanted
    ] or [ComponentData(entity_type=entity_type.quota, match_type=_ANY, match=None)]
    found: dict[Entity, dict[str, float]] = {}
    with ClusterClient(target) as cluster:
        for component in components:
            answer = cluster.first.send(DescribeClientQuotasRequest(components=[component], strict=False))
            if answer.error_code:
                raise Failure(reason(answer.error_code, answer.error_message))
            for entry in answer.entries or ():
                found[_entity(entity_type, entry.entity)] = {each.key: each.value for each in entry.values}
    return dict(sorted(found.items(), key=lambda item: str(item[0])))


def _entity(entity_type: EntityType, parts: Any) -> Entity:
    by_type = {part.entity_type: part.entity_name for part in parts}
    for other in ENTITY_TYPES.values():
        if other.quota in by_type and other != entity_type:
            return Entity(by_type[entity_type.quota], other.name, by_type[other.quota])
    return Entity(by_type[entity_type.quota])


def alter(
    target: Target, entity_type: EntityType, entity: Entity, changes: Sequence[Change], dry_run: bool
) -> None:
    """Set and remove quotas of one entity, all or none. Raises Failure."""
    from leafcuttr.wire.messages.alter_client_quotas import (
        AlterClientQuotasRequest,
        EntityData,
        OpData,
        RequestEntryData,
    )

    parts = [EntityData(entity_type=entity_type.quota, entity_name=entity.name)]
    if entity.other:
        parts.append(EntityData(entity_type=ENTITY_TYPES[entity.other].quota, entity_name=entity.other_name))
    ops = [
        OpData(key=change.name, remove=change.operation is ConfigOperation.DELETE, value=_number(change))
        for change in changes
    ]
    request = AlterClientQuotasRequest(
        entries=[RequestEntryData(entity=parts, ops=ops)], validate_only=dry_run
    )
    with ClusterClient(target) as cluster:
        (answer,) = cluster.first.send(request).entries
    if answer.error_code:
        raise Failure(reason(answer.error_code, answer.error_message))


def _number(change: Change) -> float:
    if change.operation is ConfigOperation.DELETE:
        return 0.0
    try:
        return float(change.value or "")
    except ValueError:
        raise Failure(f"{change.name}={change.value}: a quota is a number") from None
