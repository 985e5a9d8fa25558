"""What is left of the quotas of each client and address.

A bucket is kept while a client uses it, and until nothing is remembered in it: a client that connects anew finds the
one that it has left. A new one begins with what its rate gives in one window: with all of them a client would have far
more than its rate at first. That of `controller_mutation_rate` begins full (KIP-599).
"""

from collections.abc import Callable, Mapping
from typing import Final
from weakref import WeakValueDictionary

from leafcuttr.config.settings import Settings
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
    in_order,
)

_NONE: Final[Mapping[str, float]] = {}
_FEW: Final = 1000  # buckets that are kept before any is dropped


class QuotaBuckets:
    """Those of the quotas in `by_entity`, which may change. `now_s` is the time that they fill by."""

    def __init__(
        self,
        by_entity: Mapping[QuotaEntity, Mapping[str, float]],
        settings: Settings,
        now_s: Callable[[], float],
    ) -> None:
        self._by_entity = by_entity
        self._windows = QuotaWindows(
            settings.int("quota.window.num"), settings.int("quota.window.size.seconds")
        )
        self._mutation_windows = QuotaWindows(
            settings.int("controller.quota.window.num"), settings.int("controller.quota.window.size.seconds")
        )
        self._now_s = now_s
        self._in_use: WeakValueDictionary[tuple[str, QuotaHolder], Bucket] = WeakValueDictionary()
        self._kept: dict[tuple[str, QuotaHolder], Bucket] = {}
        self._drop_at = _FEW

    def limits_of(self, user: str, client_id: str | None) -> ClientLimits | None:
        """What holds for a client, by the name of its principal; None: nothing does."""
        found: dict[str, Bucket] = {}
        for entity, holder in in_order(user, client_id):
            for name, value in self._by_entity.get(entity, _NONE).items():
                if name not in found:
                    found[name] = self._bucket(name, holder, value)
        return ClientLimits(*map(found.get, OF_CLIENTS)) if found else None

    def of_address(self, address: str, own: str | None) -> Bucket | None:
        """Connections that may be opened from this IP address, whose own quota, if it has one, is that of the name
        `own`. None: any number."""
        for name in (None,) if own is None else (own, None):
            rate = self._by_entity.get(((IP, name),), _NONE).get(CONNECTION_CREATION_RATE)
            if rate is not None:
                return self._bucket(CONNECTION_CREATION_RATE, QuotaHolder(address, ""), rate)
        return None

    def _bucket(self, name: str, holder: QuotaHolder, value: float) -> Bucket:
        now_s = self._now_s()
        windows = self._windows
        rate, most_s, begins_s = value, windows.caught_up_s, float(windows.seconds)
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
