"""The topics of the running broker: found by name or id, created, deleted, enlarged, configured.

They are kept in memory; `state.metadata` has them on the disk, and `log.manager` holds their logs open.
Requests and answers are handled elsewhere, and so are the rules of names (`state.topic_names`) and of settings
(`config.topic`), and the creation of partitions (`state.partition_staging`).

Reading is plain and synchronous. A change takes its topic's turn, so that two changes of one topic, or two
creations of names that collide, never overlap; changes of different topics do. Each follows one order:

    create, enlarge   folders made (worker), metadata committed (worker), logs adopted, published (loop)
    configure         the chain of the topic made (it may wait), metadata committed (worker), published (loop)
    delete            metadata committed (worker), withdrawn, folders renamed a few at a time (loop)

so that a crash leaves at most folders that the metadata does not know: half-made ones, and those of topics that
it remembers as deleted. Both go at the next start. No client sees a topic of which only a part exists. A cancelled
caller stops a change before its commit, not after.

One module, longer than others, because all changes keep to that order and one turn for each topic.
"""

import base64
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from leafcuttr import crashpoints
from leafcuttr.config.settings import Settings
from leafcuttr.config.topic import TopicConfig, stored_topic_config, topic_config
from leafcuttr.errors import (
    InvalidPartitions,
    InvalidTopic,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from leafcuttr.log.log import Log
from leafcuttr.log.manager import LogManager, LogSpec
from leafcuttr.state import topic_names
from leafcuttr.state.internal_topics import internal_topic
from leafcuttr.state.metadata import MetadataStore, TopicRecord
from leafcuttr.state.partition_staging import adopted, in_chunks, staged
from leafcuttr_sdk import Clock, TopicPartition

ZERO_ID: Final = bytes(16)


@dataclass(slots=True, eq=False)
class Partition:
    """One partition and its log."""

    topic: "Topic"
    index: int
    log: Final[Log]

    @property
    def leader_epoch(self) -> int:
        return self.log.leader_epoch


@dataclass(slots=True, eq=False)
class Topic:
    """One topic. `id` is its 16 bytes; `partitions[n]` is partition n; `config` is what `overrides` come
    to. An `internal` one is not the clients' to write to; one with an `owner` is that plugin's alone
    (`state.topic_owners`)."""

    name: str
    id: bytes
    partitions: list[Partition]
    overrides: Mapping[str, str]
    config: TopicConfig
    internal: bool
    owner: str | None = None


Vet = Callable[[str, Mapping[str, str], Mapping[str, str]], None]
Prepare = Callable[[str, TopicConfig], Awaitable[None]]


class Topics:
    """Every topic. `by_name` and `by_id` are for reading only.

    `on_deleted` are called with a topic that no client sees any more, before its name is free again, `on_changed`
    with the name of one that was created, enlarged, configured or deleted, once that can be seen; they must not fail
    and not wait. Before that `vets` are called with the name, what the topic overrides, and what it would; they may
    raise InvalidConfig. Then `prepares` are waited for, with the name and the settings that the topic is about to have:
    what takes long is done before the change can be seen. If it does not come about, `abandons` are called with the
    name.
    """

    def __init__(
        self, *, settings: Settings, metadata: MetadataStore, logs: LogManager, clock: Clock, node_id: int
    ) -> None:
        self.node_id = node_id
        self.by_name: dict[str, Topic] = {}
        self.by_id: dict[bytes, Topic] = {}
        self.on_deleted: list[Callable[[Topic], None]] = []
        self.on_changed: list[Callable[[str], None]] = []
        self.vets: list[Vet] = []
        self.prepares: list[Prepare] = []
        self.abandons: list[Callable[[str], None]] = []
        self._settings = settings
        self._metadata = metadata
        self._logs = logs
        self._clock = clock
        self._colliding: dict[str, set[str]] = {}
        self._defaults = settings.topic_defaults, settings.of_topics
        self._turns: dict[str, trio.Lock] = {}

    def load(self) -> None:
        """Open what the metadata knows, once, at start. Raises StartError."""
        records = self._metadata.topics()
        configs = _Configs(self._settings)
        specs = [
            _specs(record, range(record.partitions), configs.of(record.name, record.overrides))
            for record in records
        ]
        deleted = self._metadata.deleted_topics()
        self._logs.load([spec for of_topic in specs for spec in of_topic], deleted=deleted)
        self._metadata.folders_are_gone(deleted)
        for record, of_topic in zip(records, specs, strict=True):
            self._publish(record, of_topic, [self._logs.logs[spec.topic_partition] for spec in of_topic])
        self._settings.on_change(self._settings_changed)

    # Reading

    def find(self, name: str) -> Topic | None:
        return self.by_name.get(name)

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """Raises UnknownTopicOrPartition."""
        topic = self.by_name.get(topic_partition.topic)
        if topic is None or not 0 <= topic_partition.partition < len(topic.partitions):
            raise UnknownTopicOrPartition
        return topic.partitions[topic_partition.partition]

    def check_creatable(self, name: str) -> None:
        """Raise InvalidTopic or TopicAlreadyExists if no topic `name` can be created now."""
        topic_names.check(name)
        if name in self.by_name:
            raise TopicAlreadyExists(f"Topic '{name}' already exists.")
        others = self._colliding.get(topic_names.collision_key(name))
        if others:
            raise InvalidTopic(f"Topic '{name}' collides with existing topic: {min(others)}")

    def check_growth(self, topic: Topic, count: int) -> None:
        """Raise InvalidPartitions unless `count` is more than the topic has."""
        present = len(topic.partitions)
        if count == present:
            raise InvalidPartitions(f"Topic already has {present} partition(s).")
        if count < present:
            raise InvalidPartitions(
                f"The topic {topic.name} currently has {present} partition(s); {count} would not be an increase."
            )

    def vetted(self, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> TopicConfig:
        """What a topic's settings would be with other overrides. Raises InvalidConfig if they cannot be these."""
        config = topic_config(self._settings, after, topic=name, kept=before)
        for vet in self.vets:
            vet(name, before, after)
        return config

    # Changing

    async def create(
        self,
        name: str,
        partitions: int,
        overrides: Mapping[str, str],
        *,
        topic_id: bytes | None = None,
        internal: bool = False,
        owner: str | None = None,
    ) -> Topic:
        """Create a topic with `partitions` (at least 1) empty partitions; an `internal` one is a plugin's own, of
        the plugin `owner` alone if that is given.

        Raises InvalidTopic, TopicAlreadyExists, InvalidPartitions, InvalidConfig, StorageError: then there is
        none.
        """
        if partitions < 1:
            raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
        async with self._turn(name):
            # In the turn, not before it: another creation of this name, or of one that collides, may just have ended.
            self.check_creatable(name)
            record = TopicRecord(
                name, topic_id or new_topic_id(), partitions, dict(overrides), internal, owner
            )
            config = self.vetted(name, {}, record.overrides)
            specs = _specs(record, range(partitions), config)
            with self._or_abandon(name):
                # Clients do not write to an internal topic, so it has no filters and validators to be made.
                if not internal:
                    await self._prepare_for(name, config)
                async with staged(self._logs, specs):
                    await trio.to_thread.run_sync(self._metadata.add_topics, [record])
            # From here on the topic exists; see `partition_staging` for what cannot be taken back.
            crashpoints.reach("topic-create.committed")
            logs = await adopted(self._logs, specs)
            crashpoints.reach("topic-create.adopted")
            topic = self._publish(record, specs, logs)
            # The broker's defaults may have changed while the logs were made, and `_settings_changed` changes only
            # topics that are published.
            _configure(topic, stored_topic_config(self._settings, record.overrides, name))
            self._tell(name)
            return topic

    def partitions_to_be(self, name: str) -> int:
        """How many partitions `ensure` gives a topic that does not exist."""
        shape = internal_topic(name, self._settings)
        return shape.partitions if shape else self._settings.int("num.partitions")

    async def ensure(self, name: str) -> Topic:
        """The topic, created if need be as the broker creates topics by itself: with its own defaults.

        Raises InvalidTopic (also if it collides with another), StorageError.
        """
        while (topic := self.by_name.get(name)) is None:
            shape = internal_topic(name, self._settings)
            # Another task may have created it while this one waited for its turn.
            with contextlib.suppress(TopicAlreadyExists):
                return await self.create(name, self.partitions_to_be(name), shape.overrides if shape else {})
        return topic

    async def delete(self, name: str, *, topic_id: bytes | None = None) -> None:
        """Delete a topic and, in the background, its files.

        With `topic_id`, only if it is still that topic. Raises UnknownTopicOrPartition, UnknownTopicId,
        StorageError.
        """
        async with self._turn(name):
            topic = self._existing(name)
            if topic_id not in (None, topic.id):
                raise UnknownTopicId
            await trio.to_thread.run_sync(self._metadata.remove_topics, [topic.id])
            crashpoints.reach("topic-delete.committed")
            with trio.CancelScope(shield=True):
                self._withdraw(topic)
                for tell in self.on_deleted:
                    tell(topic)
                self._tell(name)
                for part in in_chunks(topic.partitions):
                    for partition in part:
                        self._logs.delete(TopicPartition(name, partition.index))
                    await trio.lowlevel.checkpoint()

    async def add_partitions(self, name: str, count: int) -> None:
        """Enlarge a topic to `count` partitions.

        Raises UnknownTopicOrPartition, InvalidPartitions (it would not grow), StorageError.
        """
        async with self._turn(name):
            topic = self._existing(name)
            self.check_growth(topic, count)
            present = len(topic.partitions)
            record = TopicRecord(name, topic.id, count, topic.overrides)
            specs = _specs(record, range(present, count), topic.config)
            async with staged(self._logs, specs):
                await trio.to_thread.run_sync(self._metadata.set_partitions, topic.id, count)
            logs = await adopted(self._logs, specs)
            topic.partitions.extend(Partition(topic, index, log) for index, log in enumerate(logs, present))
            # The settings that the new logs were made with may have changed meanwhile; the turn does not keep the
            # broker's defaults from changing.
            _configure(topic, topic.config)
            self._tell(name)

    async def edit_config(self, name: str, edit: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
        """Replace a topic's overrides by what `edit` makes of them; no other change of the topic comes in
        between.

        Raises UnknownTopicOrPartition, InvalidConfig, StorageError, and what `edit` raises.
        """
        async with self._turn(name):
            topic = self._existing(name)
            overrides = dict(edit(topic.overrides))
            config = self.vetted(name, topic.overrides, overrides)
            with self._or_abandon(name):
                if not topic.internal:
                    await self._prepare_for(name, config)
                await trio.to_thread.run_sync(self._metadata.set_topic_overrides, topic.id, overrides)
            topic.overrides = overrides
            _configure(topic, stored_topic_config(self._settings, overrides, name))
            self._tell(name)

    # Steps of the above

    async def _prepare_for(self, name: str, config: TopicConfig) -> None:
        for prepare in self.prepares:
            await prepare(name, config)

    @contextlib.contextmanager
    def _or_abandon(self, name: str) -> Iterator[None]:
        """What was prepared is let go if the change does not come about."""
        try:
            yield
        except BaseException:
            for abandon in self.abandons:
                abandon(name)
            raise

    def _tell(self, name: str) -> None:
        for tell in tuple(self.on_changed):
            tell(name)

    def _existing(self, name: str) -> Topic:
        topic = self.by_name.get(name)
        if topic is None:
            raise UnknownTopicOrPartition
        return topic

    @contextlib.asynccontextmanager
    async def _turn(self, name: str) -> AsyncIterator[None]:
        key = topic_names.collision_key(name)
        lock = self._turns.setdefault(key, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._turns.pop(key, None)

    def _publish(self, record: TopicRecord, specs: Sequence[LogSpec], logs: Sequence[Log]) -> Topic:
        internal = record.internal or record.name in topic_names.INTERNAL
        topic = Topic(record.name, record.id, [], record.overrides, specs[0].config, internal, record.owner)
        topic.partitions.extend(Partition(topic, index, log) for index, log in enumerate(logs))
        self.by_name[topic.name] = topic
        self.by_id[topic.id] = topic
        self._colliding.setdefault(topic_names.collision_key(topic.name), set()).add(topic.name)
        return topic

    def _withdraw(self, topic: Topic) -> None:
        del self.by_name[topic.name]
        del self.by_id[topic.id]
        key = topic_names.collision_key(topic.name)
        self._colliding[key].discard(topic.name)
        if not self._colliding[key]:
            del self._colliding[key]

    def _settings_changed(self, _names: frozenset[str]) -> None:
        now = self._settings.topic_defaults, self._settings.of_topics
        if now[0] is self._defaults[0] and now[1] is self._defaults[1]:
            return
        self._defaults = now
        configs = _Configs(self._settings)
        for topic in self.by_name.values():
            _configure(topic, configs.of(topic.name, topic.overrides))


class _Configs:
    """Settings for many topics at once: those with the same overrides share one object."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: dict[tuple[frozenset[tuple[str, str]], ...], TopicConfig] = {}

    def of(self, topic: str, overrides: Mapping[str, str]) -> TopicConfig:
        key = frozenset(overrides.items()), frozenset(self._settings.given_to_topic(topic).items())
        config = self._known.get(key)
        if config is None:
            config = self._known[key] = stored_topic_config(self._settings, overrides, topic)
        return config


def new_topic_id() -> bytes:
    """A random id. As with Kafka's, its base64 form never begins with `-`, which a command line takes for an
    option."""
    while True:
        topic_id = uuid.uuid4().bytes
        if not base64.urlsafe_b64encode(topic_id).startswith(b"-"):
            return topic_id


def _specs(record: TopicRecord, indexes: range, config: TopicConfig) -> list[LogSpec]:
    return [LogSpec(record.name, index, record.id, config) for index in indexes]


def _configure(topic: Topic, config: TopicConfig) -> None:
    topic.config = config
    for partition in topic.partitions:
        if partition.log.config is not config:
            partition.log.config = config
