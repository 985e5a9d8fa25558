"""The authorizer: gardeners may read what the greenhouse writes, and nobody else writes to its topic."""

from leafcuttr_greenhouse import GARDENERS, TOPIC
from leafcuttr_sdk import Broker, Operation, Requester, Resource, ResourceType

_READS = (Operation.READ, Operation.DESCRIBE)


class Gardeners:
    def __init__(self, broker: Broker) -> None:
        self._topic = broker.settings.text(TOPIC)
        self._gardeners = frozenset(broker.settings.list(GARDENERS))

    def verdict(self, requester: Requester, operation: Operation, resource: Resource) -> bool | None:
        if resource.type is not ResourceType.TOPIC or resource.name != self._topic:
            return None
        if operation is Operation.WRITE:
            return False
        return True if operation in _READS and requester.principal.name in self._gardeners else None
