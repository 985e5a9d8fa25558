"""Topics against a model: whatever is done in whatever order, memory, metadata and folders say the same."""

from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leafcuttr.config.settings import Settings
from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.log.manager import LogManager
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.runtime.runtime import Runtime
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.topics import Topics
from support.gates_slice import sampled
from support.topics import alter_config

NAMES = ("a", "b", "x.y", "x_y")


@dataclass
class Model:
    """What should be there: partitions and overrides by name."""

    partitions: dict[str, int] = field(default_factory=dict)
    overrides: dict[str, dict[str, str]] = field(default_factory=dict)

    def create(self, name: str, count: int) -> ErrorCode:
        if name in self.partitions:
            return ErrorCode.TOPIC_ALREADY_EXISTS
        if any(other.replace(".", "_") == name.replace(".", "_") for other in self.partitions):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        self.partitions[name] = count
        self.overrides[name] = {}
        return ErrorCode.NONE

    def delete(self, name: str) -> ErrorCode:
        if name not in self.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        del self.partitions[name], self.overrides[name]
        return ErrorCode.NONE

    def grow(self, name: str, count: int) -> ErrorCode:
        if name not in self.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if count <= self.partitions[name]:
            return ErrorCode.INVALID_PARTITIONS
        self.partitions[name] = count
        return ErrorCode.NONE

    def alter(self, name: str, retention: int) -> ErrorCode:
        if name not in self.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if retention < -1:
            return ErrorCode.INVALID_CONFIG
        self.overrides[name] = {"retention.ms": str(retention)} if retention else {}
        return ErrorCode.NONE


async def do(topics: Topics, step: str, name: str, number: int) -> ErrorCode:
    try:
        match step:
            case "create":
                await topics.create(name, number, {})
            case "delete":
                await topics.delete(name)
            case "grow":
                await topics.add_partitions(name, number)
            case _:
                await alter_config(topics, name, {"retention.ms": str(number) if number else None})
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


STEPS = st.one_of(
    st.tuples(st.sampled_from(["create", "grow"]), st.sampled_from(NAMES), st.integers(1, 4)),
    st.tuples(st.just("alter"), st.sampled_from(NAMES), st.integers(-2, 3)),
    st.tuples(st.sampled_from(["delete", "restart"]), st.sampled_from(NAMES), st.just(0)),
)


@given(steps=st.lists(STEPS, max_size=20))
@settings(
    max_examples=sampled(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_topics_do_what_the_model_does(tmp_path: Path, steps: list[tuple[str, str, int]]) -> None:
    directory = tmp_path / str(len(list(tmp_path.iterdir())))
    given_settings = Settings({"log.dirs": str(directory), "node.id": "1"})
    clock = SystemClock()

    def opened() -> tuple[LogManager, MetadataStore, Topics]:
        logs = LogManager.open(directory, runtime=Runtime.new(clock), settings=given_settings, node_id=1)
        metadata = MetadataStore.open(directory)
        topics = Topics(settings=given_settings, metadata=metadata, logs=logs, clock=clock, node_id=1)
        topics.load()
        return logs, metadata, topics

    model = Model()
    logs, metadata, topics = opened()
    for step, name, number in steps:
        if step == "restart":
            logs.close()
            metadata.close()
            logs, metadata, topics = opened()
        else:
            expected = model.delete(name) if step == "delete" else getattr(model, step)(name, number)
            assert await do(topics, step, name, number) == expected

        assert {name: len(topic.partitions) for name, topic in topics.by_name.items()} == model.partitions
        assert {name: dict(topic.overrides) for name, topic in topics.by_name.items()} == model.overrides
        assert {topic.id: topic for topic in topics.by_name.values()} == topics.by_id
        stored = {record.name: (record.partitions, dict(record.overrides)) for record in metadata.topics()}
        assert stored == {name: (count, model.overrides[name]) for name, count in model.partitions.items()}
        folders = {
            path.name for path in directory.iterdir() if path.is_dir() and not path.name.endswith("-delete")
        }
        assert folders == {
            f"{name}-{index}" for name, count in model.partitions.items() for index in range(count)
        }
        for topic in topics.by_name.values():
            for part in topic.partitions:
                assert logs.logs[part.log.topic_partition] is part.log
                assert part.log.config is topic.config
                assert part.log.offline is None
    logs.close()
    metadata.close()
