"""Quotas of a running cluster, Kafka's too (KIP-546): read and changed through our own client; librdkafka has none."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.target import Target
from leafcuttr.cli.common.wire_client.cluster import ClusterClient

USER: Final = "user"
CLIENT: Final = "client-id"
IP: Final = "ip"
DEFAULT: Final = "<default>"
"""How the default entity of a type is shown."""
_EXACT, _DEFAULT = 0, 1


class LimitedEntity(NamedTuple):
    """Whom a quota is for: a name by type; the name None is the default of the type."""

    parts: Mapping[str, str | None]

    def __str__(self) -> str:
        return ", ".join(
            f"{'client' if kind == CLIENT else kind} {DEFAULT if name is None else name}"
            for kind, name in self.parts.items()
        )

    def shown(self, kind: str) -> str:
        """Its name of this type, for a table."""
        name = self.parts.get(kind, "")
        return DEFAULT if name is None else name


class FoundQuota(NamedTuple):
    entity: LimitedEntity
    values: Mapping[str, float]


def find(target: Target, parts: Mapping[str, str | None], *, strict: bool) -> list[FoundQuota]:
    """The quotas of the entities that have these parts; with `strict`, and no others. Raises Failure."""
    from leafcuttr.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

    components = [
        ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
        for kind, name in parts.items()
    ]
    with ClusterClient(target) as cluster:
        answer = cluster.first.send(DescribeClientQuotasRequest(components=components, strict=strict))
    if answer.error_code:
        raise Failure(reason(answer.error_code, answer.error_message))
    found = []
    for entry in answer.entries or ():
        named = {part.entity_type: part.entity_name for part in entry.entity}
        own = {kind: named[kind] for kind in (USER, CLIENT, IP) if kind in named}
        found.append(FoundQuota(LimitedEntity(own), {each.key: each.value for each in entry.values}))
    return sorted(found, key=lambda each: [each.entity.shown(kind) for kind in (USER, CLIENT, IP)])


def alter(target: Target, entity: LimitedEntity, changes: Mapping[str, float | None]) -> None:
    """Set these quotas and remove those that are None; all or none. Raises Failure."""
    from leafcuttr.wire.messages.alter_client_quotas import (
        AlterClientQuotasRequest,
        EntityData,
        OpData,
        RequestEntryData,
    )

    entry = RequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.parts.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes.items()],
    )
    with ClusterClient(target) as cluster:
        (answer,) = cluster.first.send(AlterClientQuotasRequest(entries=[entry], validate_only=False)).entries
    if answer.error_code:
        raise Failure(f"{entity}: {reason(answer.error_code, answer.error_message)}")
