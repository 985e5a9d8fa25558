"""One consumer between its requests.

A read waits its turn behind another read; everything else is done at once, also while a read waits, as Kafka's own
proxy does it. What a read has taken from the broker and not answered with counts as not read: a client that commits
meanwhile does not commit it, and a read that fails puts it back.
"""

import logging
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_http.consumers.configuration import InstanceConfig
from leafcuttr_http.consumers.rendering import RENDER, Rendered
from leafcuttr_http.consumers.request_bodies import Subscribed
from leafcuttr_http.errors import ApiError
from leafcuttr_http.schemas.shared import Schemas
from leafcuttr_http.schemas.types import TYPES, not_yet, open_registry
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.consumer import Consumer
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.principals import ANONYMOUS
from leafcuttr_sdk.records import StoredRecord
from leafcuttr_sdk.schemas import SchemaProviderError

if TYPE_CHECKING:
    from leafcuttr_sdk.schemas import SchemaProvider

_TURN_S: Final = 0.002
"""How long the loop is kept before others get their turn."""
_JSON_FACTOR: Final = 10
"""Characters of an answer for each byte that a read may take, where it is decoded by schemas: names are not stored."""


def no_consumer(group: str, name: str) -> ApiError:
    return ApiError(40403, f"There is no consumer {name!r} in group {group!r}.")


def _size(record: StoredRecord) -> int:
    return len(record.key or b"") + len(record.value or b"")


class Instance:
    """`consumer` is there for as long as the instance is known. `ended` is set to have it closed."""

    consumer: Consumer

    def __init__(
        self, group: str, name: str, config: InstanceConfig, logger: logging.Logger, schemas: Schemas
    ) -> None:
        self.group: Final = group
        self.name: Final = name
        self.config: Final = config
        self.ended: Final = trio.Event()
        self.deleted = False
        self.owner = ANONYMOUS
        """Whose it is: to others it is not there."""
        self.requests = 0
        """How many are under way: meanwhile it is not idle."""
        self.used_at = trio.current_time()
        self._logger = logger
        self._schemas = schemas
        self._pattern: str | None = None
        self._reading = trio.Lock()
        self._reads: set[trio.CancelScope] = set()
        # The first offset, by partition, of what a read has taken and not answered with yet.
        self._taken: dict[TopicPartition, int] = {}

    def end(self, *, deleted: bool) -> None:
        """Have it closed. Reads that wait find no consumer any more, or, when the proxy stops, no records."""
        self.deleted = deleted
        self.ended.set()
        for scope in self._reads:
            scope.cancel()

    # --- what to read ---------------------------------------------------------------------------------------

    def subscribe(self, wanted: Subscribed) -> None:
        """Raises ApiError: 40903 where it reads something of another kind, 422 for a pattern that is none."""
        by_topics = bool(self.consumer.subscription) and self._pattern is None
        if (wanted.topics and self._pattern is not None) or (wanted.pattern is not None and by_topics):
            was = "topics" if by_topics else "a pattern"
            raise ApiError(
                40903, f"The consumer is subscribed to {was} already; delete that subscription first."
            )
        if self.consumer.assignment and not self.consumer.subscription and self._pattern is None:
            raise ApiError(
                40903, "The consumer has partitions assigned to it; delete its subscription first."
            )
        try:
            self.consumer.subscribe(wanted.topics, pattern=wanted.pattern)
        except ValueError as error:
            raise ApiError(
                422, f"topic_pattern is no regular expression that is read here: {error}"
            ) from None
        self._pattern = wanted.pattern

    def unsubscribe(self) -> None:
        """From topics and pattern, and from partitions that were assigned."""
        self.consumer.unsubscribe()
        self._taken.clear()
        self._pattern = None

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Raises ValueError for a partition that is not assigned."""
        self.consumer.seek(partition, offset)
        self._taken.pop(partition, None)

    async def seek_to_end(self, partitions: Sequence[TopicPartition], *, beginning: bool) -> None:
        """Raises ValueError, BrokerError."""
        seek = self.consumer.seek_to_beginning if beginning else self.consumer.seek_to_end
        await seek(*partitions)
        for partition in partitions:
            self._taken.pop(partition, None)

    # --- records --------------------------------------------------------------------------------------------

    async def read(self, timeout_s: float | None, max_bytes: int) -> str:
        """The next records, as a JSON array. Raises ApiError, BrokerError."""
        config = self.config
        wait_s = config.request_s if timeout_s is None else min(timeout_s, config.request_s)
        deadline = trio.current_time() + wait_s
        max_bytes = min(max_bytes, config.max_bytes or max_bytes)
        found: str | None = None
        with trio.CancelScope() as scope:
            self._reads.add(scope)
            try:
                with trio.move_on_at(deadline) as turn:
                    await self._reading.acquire()
                if turn.cancelled_caught:
                    return "[]"
                try:
                    found = await self._read(deadline, max_bytes)
                finally:
                    self._put_back()
                    self._reading.release()
            finally:
                self._reads.discard(scope)
        if found is not None:
            return found
        if self.deleted:
            raise no_consumer(self.group, self.name)
        return "[]"

    async def _read(self, deadline: float, max_bytes: int) -> str:
        config = self.config
        if config.format not in RENDER:
            self._registry()  # before it waits for records that could not be decoded
        if config.auto_commit:
            await self._commit_quietly()
        # What there is by then is answered with, even if it is less than fetch.min.bytes.
        settled = deadline
        if config.fetch_wait_s is not None:
            settled = min(deadline, trio.current_time() + config.fetch_wait_s)
        found: dict[TopicPartition, list[StoredRecord]] = {}
        while True:
            size = sum(_size(record) for records in found.values() for record in records)
            count = sum(map(len, found.values()))
            some = await self.consumer.poll(
                wait_s=max((settled if count else deadline) - trio.current_time(), 0.0),
                max_records=None if config.max_records is None else config.max_records - count,
                max_bytes=max_bytes - size,
            )
            for record in some:
                partition = TopicPartition(record.topic, record.partition)
                records = found.setdefault(partition, [])
                if records and record.offset <= records[-1].offset:
                    records.clear()  # a rebalance has put us back to what is committed
                records.append(record)
                size += _size(record)
            # What a rebalance has taken from us is another's to read.
            found = {each: found[each] for each in found if each in self.consumer.assignment}
            self._taken = {each: records[0].offset for each, records in found.items()}
            count = sum(map(len, found.values()))
            enough = size >= min(config.min_bytes, max_bytes) or (
                config.max_records is not None and count >= config.max_records
            )
            if enough or trio.current_time() >= (settled if count else deadline):
                return await self._render(found, max_bytes)

    async def _render(self, found: dict[TopicPartition, list[StoredRecord]], max_bytes: int) -> str:
        """Of each partition those before the first that cannot be rendered; that one's error if there are no others."""
        render = RENDER.get(self.config.format)
        rendered = Rendered() if render is not None else await self._decoded(found, max_bytes)
        if render is not None:
            turn = perf_counter() + _TURN_S
            for _ in rendered.take(found, render):
                if perf_counter() > turn:
                    await trio.lowlevel.checkpoint()
                    turn = perf_counter() + _TURN_S
        if rendered.refused is not None and not rendered.parts:
            raise rendered.refused
        self._taken = rendered.left
        return f"[{','.join(rendered.parts)}]"

    async def _decoded(self, found: dict[TopicPartition, list[StoredRecord]], max_bytes: int) -> Rendered:
        """In a worker thread. A few bytes can be much JSON: it is bounded too. Raises ApiError 503."""
        from leafcuttr_http.schemas.decoding import Decoder, learn

        schemas, provider = self._schemas, self._registry()
        rendered = Rendered(_JSON_FACTOR * max_bytes)
        try:
            for records in found.values():
                await learn(schemas, provider, records)
        except SchemaProviderError as error:
            raise not_yet(str(error)) from None
        await schemas.work(rendered.decode(found, Decoder(schemas, provider, TYPES[self.config.format])))
        return rendered

    def _registry(self) -> "SchemaProvider":
        """Raises ApiError 503 while it cannot answer."""
        return open_registry(self._schemas.broker, 40601, f"The format {self.config.format}")

    def _put_back(self) -> None:
        """What was taken and not answered with is read again."""
        taken, self._taken = self._taken, {}
        for partition, offset in taken.items():
            if partition in self.consumer.assignment:
                self.consumer.seek(partition, offset)

    # --- offsets --------------------------------------------------------------------------------------------

    async def commit(self) -> None:
        """Commit what was read. Raises BrokerError."""
        consumer, offsets = self.consumer, dict[TopicPartition, CommittedOffset]()
        for partition in consumer.assignment:
            offset = self._taken.get(partition, consumer.position(partition))
            if offset is not None:
                offsets[partition] = CommittedOffset(offset)
        if offsets:
            await consumer.commit(offsets)

    async def _commit_quietly(self) -> None:
        try:
            await self.commit()
        except BrokerError as error:
            # As with Kafka's consumer, an automatic commit that fails is only logged: the next one commits more.
            self._logger.debug("consumer %s of group %s cannot commit: %s", self.name, self.group, error)

    async def close(self) -> None:
        """The last commit, if it commits by itself."""
        if self.config.auto_commit:
            await self._commit_quietly()
