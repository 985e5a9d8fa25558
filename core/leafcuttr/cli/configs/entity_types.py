"""What can have settings: topics, brokers, groups and the like; and users, clients and addresses, which have quotas."""

from typing import Final, NamedTuple

import click

from leafcuttr.cli.common.completion import complete_groups, complete_topics
from leafcuttr.cli.common.target import Target


class Kind(NamedTuple):
    """A kind of entity: `resource` is its config resource type, or `quota` the entity type of its quotas."""

    name: str
    resource: int = 0
    quota: str = ""
    has_default: bool = False
    librdkafka: bool = False


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind("topic", resource=2, librdkafka=True),
        Kind("broker", resource=4, has_default=True, librdkafka=True),
        Kind("group", resource=32, librdkafka=True),
        Kind("broker-logger", resource=8),
        Kind("client-metrics", resource=16),
        Kind("client", quota="client-id", has_default=True),
        Kind("user", quota="user", has_default=True),
        Kind("ip", quota="ip", has_default=True),
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


def own_sources(kind: Kind) -> set[str]:
    """The sources of what somebody has set for an entity of this kind, while the cluster runs."""
    return {SOURCES[source] for source in _OWN[kind.name]}


def kind_type(text: str) -> Kind:
    """An argument's type: `topic`, or `topics` as Kafka's tool has it. Raises BadParameter."""
    found = KINDS.get(text) or KINDS.get(text.removesuffix("s"))
    if found is None:
        raise click.BadParameter(f"{text!r}: expected one of {', '.join(KINDS)}")
    return found


def complete_kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in KINDS if name.startswith(incomplete)]


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Topics or groups, by the kind that is typed already."""
    kind = ctx.params.get("kind")
    if kind == KINDS["topic"]:
        return complete_topics(ctx, param, incomplete)
    return complete_groups(ctx, param, incomplete) if kind == KINDS["group"] else []


def by_librdkafka(target: Target, kind: Kind, default: bool) -> bool:
    """Whether librdkafka can ask this. Raises click.UsageError if it cannot and has settings of its own."""
    if kind.librdkafka and not default:
        return True
    if target.properties:
        what = f"the default of a {kind.name}" if default else f"{kind.name}s" if kind.quota else kind.name
        raise click.UsageError(f"-X: {what} can be asked in plaintext only for now, without librdkafka")
    return False
