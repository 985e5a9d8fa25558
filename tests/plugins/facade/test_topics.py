"""Topics, changed by plugins."""

import logging
import sys
import threading

import pytest

from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.broker import Broker as Core
from leafcuttr_sdk import Broker
from leafcuttr_sdk.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidTopic,
    OffsetOutOfRange,
    PolicyViolation,
    TopicAlreadyExists,
    TopicDeletionDisabled,
    UnknownTopicOrPartition,
)
from plugins.facade.conftest import PLUGIN, Open


async def test_the_life_of_a_topic(view: Broker) -> None:
    seen: list[str] = []
    end = view.topics.on_change(seen.append)
    info = await view.topics.create("t", partitions=2, configs={"retention.ms": "1000"})
    assert (info.name, len(info.partitions), info.overrides) == ("t", 2, {"retention.ms": "1000"})
    assert view.topics.get("t") == info
    await view.topics.alter("t", {"retention.ms": None, "cleanup.policy": "delete"})
    configs = view.topics.configs("t")
    assert (configs["retention.ms"], configs["cleanup.policy"]) == ("604800000", "delete")
    await view.topics.add_partitions("t", 5)
    assert view.topics.partition_count("t") == 5
    await view.topics.delete("t")
    assert view.topics.get("t") is None and view.topics.partition_count("t") == 0
    assert seen == ["t"] * 4
    end()
    end()
    await view.topics.ensure("u")
    assert seen == ["t"] * 4 and view.topics.names() == ["u"]


async def test_filters_read_in_worker_threads_while_topics_change(view: Broker, core: Core) -> None:
    await view.topics.create("t", configs={"retention.ms": "1000"})
    topic, done, found = core.topics.by_name["t"], threading.Event(), list[BaseException]()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def read() -> None:
        try:
            for _ in range(2000):
                assert "t" in view.topics.names()
                assert view.topics.partition_count("t") == 1
            info = view.topics.get("t")
            assert info is not None and info.overrides == {"retention.ms": "1000"}
            assert view.topics.configs("t")["retention.ms"] == "1000"
        except BaseException as error:
            found.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=read)
    try:
        thread.start()
        number = 0
        while not done.is_set():
            number += 1
            core.topics.by_name[f"u{number}"] = topic
            if number > 50:
                del core.topics.by_name[f"u{number - 50}"]
    finally:
        thread.join()
        sys.setswitchinterval(before)
        for name in [name for name in core.topics.by_name if name != "t"]:
            del core.topics.by_name[name]
    assert found == []


async def test_what_is_refused(view: Broker) -> None:
    topics = view.topics
    await topics.create("a.b")
    for name, kind in (("a.b", TopicAlreadyExists), ("a_b", InvalidTopic), ("a/b", InvalidTopic)):
        with pytest.raises(kind):
            await topics.create(name)
    with pytest.raises(InvalidConfig, match=r"retention\.ms"):
        await topics.create("t", configs={"retention.ms": "soon"})
    with pytest.raises(InvalidConfig, match=r"no\.such"):
        await topics.alter("a.b", {"no.such": "1"})
    with pytest.raises(InvalidPartitions):
        await topics.create("t", partitions=0)
    with pytest.raises(PolicyViolation):
        await topics.create("t", partitions=20_000)
    with pytest.raises(InvalidPartitions):
        await topics.add_partitions("a.b", 1)
    for change in (topics.alter("none", {}), topics.add_partitions("none", 3), topics.delete("none")):
        with pytest.raises(UnknownTopicOrPartition):
            await change
    with pytest.raises(UnknownTopicOrPartition):
        topics.configs("none")
    assert topics.names() == ["a.b"]


async def test_topics_stay_where_they_may_not_be_deleted(open_core: Open) -> None:
    view = make_broker_view(open_core(delete_topic_enable="false"), PLUGIN)
    await view.topics.create("t")
    with pytest.raises(TopicDeletionDisabled):
        await view.topics.delete("t")


async def test_records_are_deleted(view: Broker) -> None:
    await view.topics.create("t")
    for _ in range(3):
        await view.produce("t", b"v")
    assert await view.topics.delete_records("t", 0, 2) == 2
    with pytest.raises(OffsetOutOfRange):
        await view.topics.delete_records("t", 0, 4)
    assert await view.topics.delete_records("t", 0, -1) == 3
    info = view.topics.get("t")
    assert info is not None and (info.partitions[0].log_start_offset, info.partitions[0].high_watermark) == (
        3,
        3,
    )


async def test_callbacks_cannot_spoil_the_changes_they_are_told_of(
    view: Broker, core: Core, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(name: str) -> None:
        raise ValueError(f"not {name}")

    seen: list[str] = []
    view.topics.on_change(fail)
    view.topics.on_change(seen.append)
    with caplog.at_level(logging.ERROR):
        await view.topics.create("t")
    assert seen == ["t"] and "plugin sample: callback on changed topics failed: " in caplog.text


async def test_the_cluster(view: Broker, core: Core) -> None:
    from leafcuttr import __version__
    from leafcuttr.config.listeners import Listener

    assert (view.cluster.cluster_id, view.cluster.node_id) == (core.cluster_id, 1)
    assert view.cluster.version == __version__
    assert list(view.cluster.listeners) == []
    core.listeners = (Listener("PLAINTEXT", "", 9092, "broker.test", 19092),)
    assert list(view.cluster.listeners) == [("PLAINTEXT", "PLAINTEXT", "broker.test", 19092)]
    assert view.logger.name == "leafcuttr.plugin.sample" and view.clock is core.clock
    with pytest.raises(RuntimeError, match="without settings"):
        _ = view.settings
