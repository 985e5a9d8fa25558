"""A session as records of `__mqtt_sessions`: one; or, of a session with many subscriptions, one without these and one
for each bucket of them that has changed, so that one more subscription does not cost all of them. No I/O.

Buckets are written before the session that needs them: a turn may be more than one batch, and the process may end
between two. What a bucket says counts for the session with its number only.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final
from zlib import crc32

from leafcuttr_mqtt.session.types import Subscription
from leafcuttr_mqtt.storage.formats import bucket_key, encode_bucket, encode_session
from leafcuttr_mqtt.storage.state import Bucket, SessionRecord

DIVIDED_ABOVE: Final = 100
"""So many subscriptions are written with their session."""
BUCKETS: Final = 256

Records = Iterator[tuple[bytes, bytes | None]]
"""Keys and values."""


class _Written:
    """The buckets of a client that the topic has."""

    __slots__ = ("_places", "buckets", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.buckets: dict[int, tuple[Subscription, ...]] = {}
        self._places: dict[str, int] = {}

    def divide(self, subscriptions: Iterable[Subscription]) -> dict[int, tuple[Subscription, ...]]:
        """By bucket; each subscription is in the same one for as long as there is the session."""
        places = self._places
        found: dict[int, list[Subscription]] = {}
        for one in subscriptions:
            place = places.get(one.filter)
            if place is None:
                place = places[one.filter] = crc32(one.filter.encode()) % BUCKETS
            found.setdefault(place, []).append(one)
        if len(places) > 2 * sum(map(len, found.values())):
            self._places = {}
        return {place: tuple(each) for place, each in found.items()}


class SessionRecords:
    """See the module."""

    def __init__(self) -> None:
        self._written: dict[str, _Written] = {}

    def found(self, buckets: Mapping[str, Mapping[int, Bucket]]) -> None:
        """What a start has read, by client identifier and number of the bucket."""
        for client_id, each in buckets.items():
            # Of several sessions the earlier ones are over: what they left is deleted with the next record.
            number = max(bucket.session for bucket in each.values())
            written = self._written[client_id] = _Written(number)
            written.buckets = {
                place: bucket.subscriptions if bucket.session == number else ()
                for place, bucket in each.items()
            }

    def topic_is_gone(self) -> None:
        """The topic was deleted: nothing is written."""
        self._written.clear()

    def of(self, client_id: str, record: SessionRecord | None) -> Records:
        """What is to be written for the session as it is now; None: there is none. What was given out before counts as
        written."""
        written = self._written.get(client_id)
        if written is not None and (record is None or record.number != written.number):
            for place in self._written.pop(client_id).buckets:
                yield bucket_key(client_id, place), None
            written = None
        if record is None:
            yield client_id.encode(), None
            return
        if written is None and len(record.subscriptions) > DIVIDED_ABOVE:
            written = self._written[client_id] = _Written(record.number)
        if written is not None:
            yield from _changes(client_id, written, written.divide(record.subscriptions))
            record = replace(record, subscriptions=(), divided=True)
        yield client_id.encode(), encode_session(record)


def _changes(client_id: str, written: _Written, now: dict[int, tuple[Subscription, ...]]) -> Records:
    before, written.buckets = written.buckets, now
    for place, subscriptions in now.items():
        if before.get(place) != subscriptions:
            yield bucket_key(client_id, place), encode_bucket(Bucket(written.number, subscriptions))
    for place in before.keys() - now.keys():
        yield bucket_key(client_id, place), None


def joined(
    records: Mapping[str, SessionRecord], buckets: Mapping[str, Mapping[int, Bucket]]
) -> dict[str, SessionRecord]:
    """The sessions with all of their subscriptions."""
    return {
        client_id: _joined(record, buckets.get(client_id, {})) if record.divided else record
        for client_id, record in records.items()
    }


def _joined(record: SessionRecord, buckets: Mapping[int, Bucket]) -> SessionRecord:
    subscriptions = tuple(
        one
        for _, bucket in sorted(buckets.items())
        if bucket.session == record.number
        for one in bucket.subscriptions
    )
    return replace(record, subscriptions=subscriptions, divided=False)
