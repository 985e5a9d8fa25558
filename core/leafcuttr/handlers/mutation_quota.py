"""`controller_mutation_rate`: how many partitions a client may create and delete in a second (KIP-599).

A request is taken as a whole topic at a time: as long as something is left, a topic of any size is. What comes after
that is refused with THROTTLING_QUOTA_EXCEEDED until the debt is paid. Clients of versions that do not know that error
are not refused anything: they wait behind their answer.
"""

from math import ceil

import trio

from leafcuttr.errors import ThrottlingQuotaExceeded
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.quota_entities import CONTROLLER_MUTATION_RATE


class MutationQuota:
    """That of one request. `strict_from` is the first version of its API that knows the error."""

    def __init__(self, broker: Broker, context: RequestContext, strict_from: int) -> None:
        self._bucket = None if context.limits is None else context.limits.mutations
        self._is_strict = context.api_version >= strict_from
        self._counts = broker.counts
        self._until_s = 0.0

    def take(self, partitions: int) -> None:
        """So many are to be created or deleted. Raises ThrottlingQuotaExceeded: they may not be."""
        bucket = self._bucket
        if bucket is None:
            return
        now_s = trio.current_time()
        refused = self._is_strict and bucket.level(now_s) < 0
        if not refused:
            bucket.take(partitions, now_s)
        if refused or not self._is_strict:
            wait_s = bucket.wait_s(now_s)
            if wait_s:
                self._counts.throttled[CONTROLLER_MUTATION_RATE].add(wait_s)
                self._until_s = now_s + wait_s
        if refused:
            raise ThrottlingQuotaExceeded  # Kafka has no words for it either

    @property
    def throttle_time_ms(self) -> int:
        """For the answer: how long the client has to wait, by now."""
        return max(ceil((self._until_s - trio.current_time()) * 1000), 0) if self._until_s else 0
