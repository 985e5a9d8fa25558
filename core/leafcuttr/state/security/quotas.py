"""Quotas of users, client ids and addresses. In memory after what is on the disk: a change is published once it is
committed, and holds from then on, for connections that are open too.

Which quota holds for a client is in `quota_entities`; what is left of it, in `buckets`. A bucket is kept while a client
uses it, and until nothing is remembered in it: a client that connects anew finds the one that it has left. A new one
begins with what its rate gives in one window: with all of them, as in Kafka, a client would have far more than its rate
at first. That of `controller_mutation_rate` begins full (KIP-599).
"""

from collections.abc import Callable, Mapping
from typing import Final
from weakref import WeakValueDictionary

import trio

from leafcuttr.state.metadata import MetadataStore, StoredQuota
from leafcuttr.state.security.buckets import Bucket
from leafcuttr.state.security.limits import ClientLimits, QuotaWindows
from leafcuttr.state.security.quota_entities import (
    CONNECTION_CREATION_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    OF_CLIENTS,
    REQUEST_PERCENTAGE,
    QuotaEntity,
    QuotaHolder,
    from_stored_form,
    in_order,
    plain_address,
    stored_form,
)

QuotaChanges = Mapping[QuotaEntity, Mapping[str, float | None]]
"""By entity and quota; None removes it."""
_NONE: Final[Mapping[str, float]] = {}
_FEW: Final = 1000  # buckets that are kept before any is dropped


class Quotas:
    """See the module. `now_s` is the time that buckets fill by."""

    def __init__(
        self,
        metadata: MetadataStore,
        windows: QuotaWindows,
        mutation_windows: QuotaWindows,
        now_s: Callable[[], float] = trio.current_time,
    ) -> None:
        self._metadata = metadata
        self._windows = windows
        self._mutation_windows = mutation_windows
        self._now_s = now_s
        self._by_entity: dict[QuotaEntity, dict[str, float]] = {}
        for one in metadata.quotas():
            self._by_entity.setdefault(from_stored_form(one.entity), {})[one.name] = one.value
        self._in_use: WeakValueDictionary[tuple[str, QuotaHolder], Bucket] = WeakValueDictionary()
        self._kept: dict[tuple[str, QuotaHolder], Bucket] = {}
        self._drop_at = _FEW
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

    def limits_of(self, user: str, client_id: str | None) -> ClientLimits | None:
        """What holds for a client, by the name of its principal; None: nothing does."""
        if not self.of_clients:
            return None
        found: dict[str, Bucket] = {}
        for entity, holder in in_order(user, client_id):
            for name, value in self._by_entity.get(entity, _NONE).items():
                if name not in found:
                    found[name] = self._bucket(name, holder, value)
        return ClientLimits(*map(found.get, OF_CLIENTS)) if found else None

    def of_address(self, address: str, host_name: str | None = None) -> Bucket | None:
        """Connections that may be opened from this IP address, which is that of a host by this name, if it is one of
        `named_hosts`. None: any number."""
        own = self._addresses.get(address, host_name)
        for name in (None,) if own is None else (own, None):
            rate = self._by_entity.get(((IP, name),), _NONE).get(CONNECTION_CREATION_RATE)
            if rate is not None:
                return self._bucket(CONNECTION_CREATION_RATE, QuotaHolder(address, ""), rate)
        return None

    def _bucket(self, name: str, holder: QuotaHolder, value: float) -> Bucket:
        now_s = self._now_s()
        windows = self._windows
        rate, most_s, begins_s = value, windows.averaged_s, windows.seconds
        if name == REQUEST_PERCENTAGE:
            rate = value / 100
        elif name == CONTROLLER_MUTATION_RATE:
            most_s = begins_s = self._mutation_windows.whole_s
        bucket = self._in_use.get((name, holder))
        if bucket is None:
            bucket = self._in_use[name, holder] = Bucket(rate, rate * most_s, rate * begins_s, now_s)
            if name == REQUEST_PERCENTAGE:
                bucket.longest_s = windows.seconds
        elif bucket.rate != rate:
            bucket.resize(rate, rate * most_s, now_s)
        self._kept[name, holder] = bucket
        if len(self._kept) > self._drop_at:
            self._drop(now_s)
        return bucket

    def _drop(self, now_s: float) -> None:
        """Buckets that are full and that no connection has."""
        for key in [key for key, bucket in self._kept.items() if bucket.is_full(now_s)]:
            del self._kept[key]
        self._kept.update(self._in_use)
        self._drop_at = max(2 * len(self._kept), _FEW)

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
