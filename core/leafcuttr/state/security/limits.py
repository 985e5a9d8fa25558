"""The quotas that hold for one client, and what they say about its requests. No I/O, no clock."""

from typing import Final, NamedTuple

from leafcuttr.state.security.buckets import Bucket

_LEAST_FETCH_S: Final = 0.1
"""A consumer that has used up its quota waits until it may have what its rate gives in so much time: its fetches would
be very small, and very many, otherwise."""


class QuotaWindows(NamedTuple):
    """`quota.window.num` and `quota.window.size.seconds`: how much of its rate a client may catch up with."""

    number: int
    seconds: int

    @property
    def averaged_s(self) -> int:
        """All of them but one, as in Kafka: the one that goes on is not over."""
        return self.seconds * max(self.number - 1, 1)

    @property
    def caught_up_s(self) -> float:
        """What a client that has rested may have at once, beside what its rate goes on to give. Kafka gives all of
        `averaged_s` at once and then nothing for as long, so that about the rate holds over three times that. A fifth
        of it keeps that within a tenth as well."""
        return max(self.averaged_s / 5, self.seconds)

    @property
    def whole_s(self) -> int:
        return self.seconds * self.number


class ClientLimits(NamedTuple):
    """The buckets of one client, each shared by all connections that have the quota together. None: no such quota.
    `producer` and `consumer` hold bytes, `request` seconds of the event loop, `mutations` partitions."""

    producer: Bucket | None = None
    consumer: Bucket | None = None
    request: Bucket | None = None
    mutations: Bucket | None = None

    def produced(self, size: int, now_s: float) -> None:
        """So many bytes were written."""
        if self.producer is not None:
            self.producer.take(size, now_s)

    def consumed(self, size: int, now_s: float) -> None:
        """So many bytes were read."""
        if self.consumer is not None:
            self.consumer.take(size, now_s)

    def fetch_wait_s(self, now_s: float) -> float:
        """How long a consumer has to wait for records; 0 if it may have some. The time of the loop counts as well:
        what was taken of it before this request."""
        wait_s = 0.0
        consumer, request = self.consumer, self.request
        if consumer is not None and consumer.level(now_s) < 0:
            wait_s = consumer.wait_s(now_s, _LEAST_FETCH_S * consumer.rate)
        if request is not None:
            wait_s = max(wait_s, request.wait_s(now_s))
        return wait_s

    def most_bytes(self, now_s: float) -> int:
        """How much a consumer that need not wait may have at once; the first batch of an answer may be larger."""
        consumer = self.consumer
        assert consumer is not None
        return max(int(max(consumer.level(now_s), _LEAST_FETCH_S * consumer.rate)), 1)
