"""One plugin's view of the broker that acts for a client: the parts of the plugin's own, with rights."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING

from leafcuttr.handlers.access import DESCRIBE_TOPIC, WRITE_TRANSACTION
from leafcuttr.plugins.facade.acting.groups import ActingGroups
from leafcuttr.plugins.facade.acting.rights import Rights
from leafcuttr.plugins.facade.acting.topics import ActingTopics
from leafcuttr.plugins.facade.view import BrokerView

if TYPE_CHECKING:
    from leafcuttr_sdk import Consumer, TransactionalProducer
    from leafcuttr_sdk.peers import Peer
    from leafcuttr_sdk.schemas import SchemaProvider


class ActingView(BrokerView):
    """See `leafcuttr_sdk.Security.acting_for`."""

    def __init__(self, of: BrokerView, rights: Rights) -> None:
        self.__dict__.update(of.__dict__)
        self._rights = rights
        self._client = rights.client
        self._sees = partial(rights.may, DESCRIBE_TOPIC)
        self._with(of._producing.acting_for(rights), of._reading.acting_for(rights))
        self.topics = ActingTopics(self._core, self._name, rights)
        self.groups = ActingGroups(self._core, rights)

    @property
    def schemas(self) -> "SchemaProvider | None":
        provider = super().schemas
        if provider is None:
            return provider
        from leafcuttr.plugins.facade.acting.schemas import ActingSchemas

        return ActingSchemas(provider, self._rights)

    def _member(
        self, group: str, opening: "AbstractAsyncContextManager[Consumer]"
    ) -> "AbstractAsyncContextManager[Consumer]":
        from leafcuttr.plugins.facade.acting.consumer import open_acting_consumer

        return open_acting_consumer(self._rights, group, opening)

    def transaction(
        self, transactional_id: str, *, timeout_ms: int = 60_000
    ) -> "AbstractAsyncContextManager[TransactionalProducer]":
        self._rights.need(WRITE_TRANSACTION, transactional_id)
        return super().transaction(transactional_id, timeout_ms=timeout_ms)

    def peer(
        self, properties: Mapping[str, str] | None = None, *, strict: bool = False
    ) -> "AbstractAsyncContextManager[Peer]":
        if properties is None:
            raise RuntimeError("a broker that acts for a client is not a peer: use that of the plugin")
        return super().peer(properties, strict=strict)
