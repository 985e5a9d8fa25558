"""`leafcuttr_sdk.Topics`: the topics, changed as clients change them, with the same checks and errors."""

from collections.abc import Callable, Mapping

from leafcuttr.config.describe import describe_topic, without_secrets
from leafcuttr.config.topic import validate_overrides
from leafcuttr.errors import (
    InvalidTopic,
    PolicyViolation,
    TopicDeletionDisabled,
    UnknownTopicOrPartition,
)
from leafcuttr.handlers.config_resources import ConfigResourceType, alter
from leafcuttr.handlers.create_topics import MAX_PARTITIONS
from leafcuttr.handlers.delete_records import HIGH_WATERMARK, move_log_start
from leafcuttr.runtime.plugin_parts import Failures, Part, PartError, call
from leafcuttr.state import topic_names
from leafcuttr.state.broker import Broker
from leafcuttr.state.topics import Topic
from leafcuttr_sdk import PartitionInfo, TopicInfo, TopicPartition


def existing(core: Broker, name: str) -> Topic:
    """Raises UnknownTopicOrPartition."""
    topic = core.topics.by_name.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"There is no topic '{name}'.")
    return topic


async def ensured(core: Broker, name: str) -> Topic:
    """The topic, created if it does not exist and `auto.create.topics.enable` allows it. Raises
    UnknownTopicOrPartition, InvalidTopic, StorageError."""
    found = core.topics.by_name.get(name)
    if found is not None:
        return found
    topic_names.check(name)
    if name in topic_names.INTERNAL or not core.settings.bool("auto.create.topics.enable"):
        raise UnknownTopicOrPartition(f"There is no topic '{name}'.")
    return await core.topics.ensure(name)


class TopicsView:
    """All topics of a running broker, for one plugin. What reads is called in worker threads too, by filters
    (`leafcuttr_sdk.ReadOnlyTopics`): it goes through copies, while the loop changes topics."""

    def __init__(self, core: Broker, plugin: str) -> None:
        self._core = core
        self._plugin = plugin
        self._topics = core.topics

    def names(self, *, internal: bool = False) -> list[str]:
        return sorted(
            name for name, topic in dict(self._topics.by_name).items() if internal or not topic.internal
        )

    def get(self, name: str) -> TopicInfo | None:
        topic = self._topics.by_name.get(name)
        return None if topic is None else _info(self._core, topic)

    def partition_count(self, name: str) -> int:
        topic = self._topics.by_name.get(name)
        return 0 if topic is None else len(topic.partitions)

    async def create(
        self,
        name: str,
        *,
        partitions: int | None = None,
        configs: Mapping[str, str] | None = None,
        internal: bool = False,
        owned: bool = False,
    ) -> TopicInfo:
        if owned and not internal:
            raise ValueError(
                f"topic {name} is to be owned, and is not internal: only an internal topic has an owner"
            )
        if owned and name in topic_names.INTERNAL:
            raise InvalidTopic(f"Topic '{name}' is the broker's own.")
        self._topics.check_creatable(name)
        overrides = dict(configs or {})
        validate_overrides(self._core.settings, overrides, name)
        count = self._core.settings.int("num.partitions") if partitions is None else partitions
        _check_count(count)
        owner = self._plugin if owned else None
        topic = await self._topics.create(name, count, overrides, internal=internal, owner=owner)
        return _info(self._core, topic)

    async def ensure(self, name: str) -> TopicInfo:
        return _info(self._core, await ensured(self._core, name))

    async def alter(self, name: str, configs: Mapping[str, str | None]) -> None:
        def edited(present: Mapping[str, str]) -> Mapping[str, str]:
            texts = dict(present)
            for setting, value in configs.items():
                if value is None:
                    texts.pop(setting, None)
                else:
                    texts[setting] = value
            return texts

        given = [setting for setting, value in configs.items() if value is not None]
        await alter(self._core, None, ConfigResourceType.TOPIC, name, given, edited, validate_only=False)

    async def add_partitions(self, name: str, total: int) -> None:
        topic = existing(self._core, name)
        self._topics.check_growth(topic, total)
        _check_count(total - len(topic.partitions))
        await self._topics.add_partitions(name, total)

    async def delete(self, name: str) -> None:
        if not self._core.settings.bool("delete.topic.enable"):
            raise TopicDeletionDisabled("delete.topic.enable is false")
        existing(self._core, name)
        await self._topics.delete(name)

    async def delete_records(self, name: str, partition: int, before_offset: int) -> int:
        if name in topic_names.INTERNAL:
            raise InvalidTopic(f"Topic '{name}' is the broker's own.")
        offset = HIGH_WATERMARK if before_offset < 0 else before_offset
        start = move_log_start(self._core, TopicPartition(name, partition), offset, plugin=self._plugin)
        if start > 0:
            await self._core.logs.keep_log_starts()
        return start

    def configs(self, name: str) -> Mapping[str, str | None]:
        topic = existing(self._core, name)
        described = describe_topic(self._core.settings, name, topic.overrides, topic.config)
        return {each.name: each.value for each in described if not each.sensitive}

    def on_change(self, call: Callable[[str], None]) -> Callable[[], None]:
        listeners = self._topics.on_changed
        told = _Told(Part(self._plugin, "callback on changed topics"), call)
        listeners.append(told)

        def end() -> None:
            if told in listeners:
                listeners.remove(told)

        return end


class _Told:
    """A plugin's callback: one that raises is logged, and harms neither the change nor the other callbacks."""

    def __init__(self, part: Part, callback: Callable[[str], None]) -> None:
        self._part = part
        self._callback = callback
        self._tell = Failures()

    def __call__(self, name: str) -> None:
        try:
            call(self._part, self._callback, name)
        except PartError as failed:
            self._tell(failed)


def _check_count(count: int) -> None:
    if count > MAX_PARTITIONS:
        raise PolicyViolation("Excessively large number of partitions per request.")


def _info(core: Broker, topic: Topic) -> TopicInfo:
    return TopicInfo(
        topic.name,
        topic.id,
        [
            PartitionInfo(each.index, each.log.log_start_offset, each.log.high_watermark, each.log.offline)
            for each in topic.partitions
        ],
        without_secrets(core.settings, topic.overrides),
        topic.internal,
        topic.owner,
    )
