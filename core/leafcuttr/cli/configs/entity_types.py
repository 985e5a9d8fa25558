"""What can have settings: topics, brokers, groups and the like; and users, clients and addresses, which have quotas."""

from typing import Final, NamedTuple

import click

from leafcuttr.cli.common.completion import complete_groups, complete_topics


class EntityType(NamedTuple):
    """A type of entity: `resource` is its config resource type, or `quota` the entity type of its quotas."""

    name: str
    resource: int = 0
    quota: str = ""
    has_default: bool = False
    librdkafka: bool = False


ENTITY_TYPES: Final = {
    entity_type.name: entity_type
    for entity_type in (
        EntityType("topic", resource=2, librdkafka=True),
        EntityType("broker", resource=4, has_default=True, librdkafka=True),
        EntityType("group", resource=32, librdkafka=True),
        EntityType("broker-logger", resource=8),
        EntityType("client-metrics", resource=16),
        EntityType("client", quota="client-id", has_default=True),
        EntityType("user", quota="user", has_default=True),
        EntityType("ip", quota="ip", has_default=True),
    )
}
SOURCES: Final = {
    1: "topic",
    2: "broker",
    3: "broker default",
    4: "file",
    5: "built in",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
"""The sources of Kafka's ConfigSource in our words."""
_OWN: Final = {"topic": {1}, "broker": {2, 3}, "group": {8}, "broker-logger": {6}, "client-metrics": {7}}


def own_sources(entity_type: EntityType) -> set[str]:
    """The sources of settings that were set for an entity of this type while the cluster runs."""
    return {SOURCES[source] for source in _OWN[entity_type.name]}


def parse_entity_type(text: str) -> EntityType:
    """An argument's type: `topic`, or `topics` as Kafka's tool has it. Raises BadParameter."""
    found = ENTITY_TYPES.get(text) or ENTITY_TYPES.get(text.removesuffix("s"))
    if found is None:
        raise click.BadParameter(f"{text!r}: expected one of {', '.join(ENTITY_TYPES)}")
    return found


def complete_entity_types(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in ENTITY_TYPES if name.startswith(incomplete)]


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Topics or groups, by the type that is typed already."""
    entity_type = ctx.params.get("entity_type")
    if entity_type == ENTITY_TYPES["topic"]:
        return complete_topics(ctx, param, incomplete)
    return complete_groups(ctx, param, incomplete) if entity_type == ENTITY_TYPES["group"] else []


def by_librdkafka(entity_type: EntityType, default: bool) -> bool:
    """Whether librdkafka has the request for it."""
    return entity_type.librdkafka and not default
