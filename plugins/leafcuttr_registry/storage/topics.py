"""The topics of the registry: `_schemas`, which any registry can read and clients may write to, and an internal one
that keeps the highest ids."""

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.errors import TopicAlreadyExists

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker

SCHEMAS: Final = "_schemas"
IDS: Final = "__leafcuttr_registry_ids"
_LARGEST: Final = 8 * 1024 * 1024
"""Bytes of a record: a schema of a megabyte has more when it is escaped as JSON."""


async def ensure(broker: "Broker") -> None:
    """Create those that are not there. Where clients have altered `_schemas` so that it would lose schemas, it is
    altered back, and more partitions than one are not read: a broker that does not start could not be mended. Raises
    BrokerError."""
    await create(broker, SCHEMAS, internal=False)
    await create(broker, IDS, internal=True)
    found = broker.topics.get(SCHEMAS)
    if found is not None and len(found.partitions) != 1:
        broker.logger.error(
            "topic %s has %d partitions; it has to have one, for the order of its records: only partition 0 is read",
            SCHEMAS,
            len(found.partitions),
        )
    policy = broker.topics.configs(SCHEMAS)["cleanup.policy"]
    if policy != "compact":
        broker.logger.error(
            "topic %s had cleanup.policy=%s, which deletes schemas; it is compact again", SCHEMAS, policy
        )
        await broker.topics.alter(SCHEMAS, {"cleanup.policy": "compact"})


async def create(broker: "Broker", name: str, *, internal: bool) -> None:
    """Create one unless it is there. Raises BrokerError."""
    if broker.topics.get(name) is not None:
        return
    configs = {"cleanup.policy": "compact", "max.message.bytes": str(_LARGEST)}
    with suppress(TopicAlreadyExists):
        await broker.topics.create(name, partitions=1, configs=configs, internal=internal, owned=internal)
