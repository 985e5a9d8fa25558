"""What one client of a plugin may do, as the handlers of Kafka's protocol would decide, and what it uses of its
quotas."""

from collections.abc import Iterable
from typing import Final

import trio

from leafcuttr.handlers.access import (
    CREATE_ON_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_TOPIC,
    READ_GROUP,
    READ_TOPIC,
    WRITE_TOPIC,
    Right,
    client_may,
)
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import ClientIdentity
from leafcuttr.state.security.acl import CLUSTER_NAME
from leafcuttr.state.security.limits import ClientLimits
from leafcuttr_sdk.security import Operation, ResourceType, denied


class Rights:
    """`plugin` is named in the audit log in the place of a request."""

    def __init__(self, core: Broker, client: ClientIdentity, plugin: str) -> None:
        self._core = core
        self.client: Final = client
        self._plugin = plugin

    def may(self, right: Right, name: str = CLUSTER_NAME, *, quietly: bool = True) -> bool:
        return client_may(self._core, self.client, self._plugin, right, name, quietly=quietly)

    def need(self, right: Right, name: str = CLUSTER_NAME) -> None:
        """Raises AuthorizationFailed."""
        if not self.may(right, name, quietly=False):
            operation, kind = Operation[right.operation.name], ResourceType[right.resource_type.name]
            raise denied(self.client.principal, operation, kind, name)

    def need_on_cluster_or(self, on_cluster: Right, right: Right, name: str) -> None:
        """Either of them. Raises AuthorizationFailed."""
        if not self.may(on_cluster):
            self.need(right, name)

    def need_to_write(self, topic: str) -> None:
        """Raises AuthorizationFailed."""
        self.need(WRITE_TOPIC, topic)

    def need_to_read(self, topic: str, *, records: bool) -> None:
        """Its records, or its offsets only. Raises AuthorizationFailed."""
        self.need(READ_TOPIC if records else DESCRIBE_TOPIC, topic)

    def need_to_commit(self, group: str, topics: Iterable[str]) -> None:
        """Raises AuthorizationFailed."""
        self.need(READ_GROUP, group)
        for topic in dict.fromkeys(topics):
            self.need(READ_TOPIC, topic)

    def need_to_create(self, topic: str) -> None:
        """Raises AuthorizationFailed."""
        self.need_on_cluster_or(CREATE_ON_CLUSTER, CREATE_TOPIC, topic)

    def produced(self, size: int) -> None:
        """Bytes of records that are written."""
        limits = self._limits()
        if limits is not None:
            limits.produced(size, trio.current_time())

    def consumed(self, size: int) -> None:
        """Bytes of batches that were read."""
        limits = self._limits()
        if limits is not None:
            limits.consumed(size, trio.current_time())

    def _limits(self) -> ClientLimits | None:
        return self._core.quotas.limits_of(self.client.principal.name, self.client.client_id)
