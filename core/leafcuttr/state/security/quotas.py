"""Quotas of users, client ids and addresses. In memory after what is on the disk: a change is published once it is
committed, and holds from then on, for connections that are open too.

Which quota holds for a client is in `quota_entities`; what is left of it, in `quota_buckets`, which is imported for the
first client that has one.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.config.settings import Settings
from leafcuttr.state.metadata import MetadataStore, StoredQuota
from leafcuttr.state.security.quota_entities import (
    CONNECTION_CREATION_RATE,
    IP,
    OF_CLIENTS,
    REQUEST_PERCENTAGE,
    QuotaEntity,
    from_stored_form,
    plain_address,
    stored_form,
)

if TYPE_CHECKING:
    from leafcuttr.state.security.buckets import Bucket
    from leafcuttr.state.security.limits import ClientLimits
    from leafcuttr.state.security.quota_buckets import QuotaBuckets

QuotaChanges = Mapping[QuotaEntity, Mapping[str, float | None]]
"""By entity and quota; None removes it."""


class Quotas:
    """See the module. `now_s` is the time that buckets fill by."""

    def __init__(
        self, metadata: MetadataStore, settings: Settings, now_s: Callable[[], float] = trio.current_time
    ) -> None:
        self._metadata = metadata
        self._settings = settings
        self._now_s = now_s
        self._by_entity: dict[QuotaEntity, dict[str, float]] = {}
        for one in metadata.quotas():
            self._by_entity.setdefault(from_stored_form(one.entity), {})[one.name] = one.value
        self._buckets: QuotaBuckets | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._turn: Final = trio.Lock()
        self._look()

    def _look(self) -> None:
        names = {name for values in self._by_entity.values() for name in values}
        self.of_clients = not names.isdisjoint(OF_CLIENTS)
        """Whether any client has a quota."""
        self.of_loop_time = REQUEST_PERCENTAGE in names
        self.of_addresses = CONNECTION_CREATION_RATE in names
        hosts = [name for ((kind, name), *_) in self._by_entity if kind == IP and name is not None]
        self._addresses = {address: name for name in hosts if (address := plain_address(name)) is not None}
        self.named_hosts = tuple(name for name in hosts if plain_address(name) is None)
        """Those that have a quota by a name that is no IP address."""

    def entries(self) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """All quotas, by entity and name."""
        return self._by_entity

    def on_change(self, call: Callable[[], None]) -> None:
        """Have it called after each change."""
        self._callbacks.append(call)

    def limits_of(self, user: str, client_id: str | None) -> "ClientLimits | None":
        """What holds for a client, by the name of its principal; None: nothing does."""
        return self._all_buckets().limits_of(user, client_id) if self.of_clients else None

    def of_address(self, address: str, host_name: str | None = None) -> "Bucket | None":
        """Connections that may be opened from this IP address, which is that of a host by this name, if it is one of
        `named_hosts`. None: any number."""
        if not self.of_addresses:
            return None
        return self._all_buckets().of_address(address, self._addresses.get(address, host_name))

    def _all_buckets(self) -> "QuotaBuckets":
        if self._buckets is None:
            from leafcuttr.state.security.quota_buckets import QuotaBuckets

            self._buckets = QuotaBuckets(self._by_entity, self._settings, self._now_s)
        return self._buckets

    async def alter(self, changes: QuotaChanges) -> None:
        """All of them or none. Raises StorageError. Cancelled: they may have been stored, and hold if so."""
        with trio.CancelScope(shield=True):
            async with self._turn:
                changed = {
                    entity: {
                        name: value
                        for name, value in values.items()
                        if self._by_entity.get(entity, {}).get(name) != value
                    }
                    for entity, values in changes.items()
                }
                if any(changed.values()):
                    await trio.to_thread.run_sync(self._store, changed)
                    self._publish(changed)

    def _store(self, changes: QuotaChanges) -> None:
        stored: list[StoredQuota] = []
        removed: list[tuple[str, str]] = []
        for entity, values in changes.items():
            for name, value in values.items():
                if value is None:
                    removed.append((stored_form(entity), name))
                else:
                    stored.append(StoredQuota(stored_form(entity), name, value))
        self._metadata.set_quotas(stored, removed)

    def _publish(self, changes: QuotaChanges) -> None:
        for entity, values in changes.items():
            found = {**self._by_entity.get(entity, {}), **values}
            left = {name: value for name, value in found.items() if value is not None}
            if left:
                self._by_entity[entity] = left
            else:
                self._by_entity.pop(entity, None)
        self._look()
        for call in self._callbacks:
            call()
