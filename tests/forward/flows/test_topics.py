"""Topics of both ends: found, created, enlarged, given settings, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr_forward.flows.errors import FlowStopped
from leafcuttr_forward.flows.report import FlowReport, FlowState
from leafcuttr_forward.flows.routes import Route
from leafcuttr_forward.flows.spec import FLOWS_TOPIC, FlowSpec, Partitioning, TopicCreation, TopicRule
from leafcuttr_forward.flows.topics import TopicPlan, circle_in
from leafcuttr_sdk.types import TopicPartition
from support.flows import (
    LOGGER,
    Ends,
    contents,
    copy_all,
    fill,
    flow_of,
    flowing,
    numbered,
    two_clusters,
    until_position,
    until_state,
)
from support.waiting import eventually


async def planned(spec: FlowSpec, ends: Ends) -> tuple[TopicPlan, FlowReport]:
    report = FlowReport(spec.name)
    plan = TopicPlan(spec, ends.source, ends.target, report, LOGGER)
    await plan.refresh()
    return plan, report


async def test_a_topic_gets_the_partitions_and_the_settings_of_the_source(tmp_path: Path) -> None:
    configs = {"cleanup.policy": "compact", "max.message.bytes": "5000", "min.insync.replicas": "1"}
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=3, configs=configs)
        spec = flow_of("orders", creation=TopicCreation(settings={"retention.ms": "77000"}))
        plan, _ = await planned(spec, ends)
        assert (await ends.target.topics(["orders"]))["orders"].partitions == 3
        found = (await ends.target.topic_configs(["orders"]))["orders"]
        assert found == {"cleanup.policy": "compact", "max.message.bytes": "5000", "retention.ms": "77000"}
        assert plan.route("orders") == Route("orders", 3, 5000)


async def test_settings_are_made_the_same_at_each_refresh(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1, configs={"segment.bytes": "2000000"})
        plan, _ = await planned(flow_of("orders"), ends)
        await ends.source.alter_topic("orders", {"segment.bytes": None, "retention.ms": "99000"})
        await ends.target.alter_topic("orders", {"min.insync.replicas": "1"})
        await plan.refresh()
        found = (await ends.target.topic_configs(["orders"]))["orders"]
        assert found == {"retention.ms": "99000", "min.insync.replicas": "1"}


async def test_times_stay_those_of_the_source(tmp_path: Path) -> None:
    """Where that sets them itself too: the target is not told to."""
    configs = {"message.timestamp.type": "LogAppendTime", "retention.ms": "86400000"}
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1, configs=configs)
        await fill(ends.source, "orders", numbered(20))
        wanted = await contents(ends.source, "orders")
        await copy_all(flow_of("orders", stop_at_end=True), ends.source, ends.target)
        assert await contents(ends.target, "orders") == wanted
        assert (await ends.target.topic_configs(["orders"]))["orders"] == {"retention.ms": "86400000"}


async def test_settings_stay_where_they_are_not_to_be_copied(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1, configs={"segment.bytes": "2000000"})
        await planned(flow_of("orders", creation=TopicCreation(sync_settings=False)), ends)
        assert (await ends.target.topic_configs(["orders"]))["orders"] == {}


async def test_settings_that_the_target_refuses_are_left_out(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=2)
        await planned(flow_of("orders", creation=TopicCreation(settings={"no.such": "1"})), ends)
        assert (await ends.target.topics(["orders"]))["orders"].partitions == 2


async def test_names_patterns_and_excludes(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        for name in ("a.1", "a.2", "a.internal", "b"):
            await ends.source.create_topic(name, partitions=1)
        await ends.source.create_topic(FLOWS_TOPIC, partitions=1)
        await ends.source.commit("some-group", {})
        rules = [
            TopicRule(source="b", target="from-b", partition=4),
            TopicRule(source=".*", is_pattern=True, exclude=[r".*\.internal"], target="edge.{topic}"),
            TopicRule(source="none"),
        ]
        plan, _ = await planned(flow_of(rules=rules), ends)
        assert {name: plan.route(name).topic for name in plan.sources} == {
            "a.1": "edge.a.1",
            "a.2": "edge.a.2",
            "b": "from-b",
        }
        assert plan.route("b") == Route("from-b", 5, fixed=4)
        assert plan.missing == {"none"}


async def test_a_target_with_fewer_partitions_is_enlarged_or_gets_records_by_key(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        for name in ("grows", "stays"):
            await ends.source.create_topic(name, partitions=4)
            await ends.target.create_topic(name, partitions=2)
        plan, _ = await planned(flow_of("grows"), ends)
        assert plan.route("grows") == Route("grows", 4)
        plan, report = await planned(flow_of("stays", creation=TopicCreation(create=False)), ends)
        assert plan.route("stays") == Route("stays", 2, by_key=True)
        assert "records go by their keys" in report.notes["stays"]
        plan, _ = await planned(flow_of("stays", partitioning=Partitioning.BY_KEY), ends)
        assert plan.route("stays") == Route("stays", 2, by_key=True)


async def test_one_that_is_missing_and_not_to_be_created_is_said(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        plan, report = await planned(flow_of("orders", creation=TopicCreation(create=False)), ends)
        assert plan.partitions == []
        assert "topics are not to be created" in report.notes["orders"]
        await ends.target.create_topic("orders", partitions=1)
        await plan.refresh()
        assert plan.partitions == [TopicPartition("orders", 0)]
        assert "orders" not in report.notes


async def test_a_replication_factor_is_lowered_to_the_brokers_there_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        plan, _ = await planned(flow_of("orders", creation=TopicCreation(replication_factor=2)), ends)
        assert plan.partitions == [TopicPartition("orders", 0)]
    assert "flow f: the target has 1 brokers: topics get that many replicas, not 2" in caplog.text


async def test_a_name_that_the_target_refuses_is_that_topics_trouble(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        for name in ("good", "bad"):
            await ends.source.create_topic(name, partitions=1)
        rules = [TopicRule(source="bad", target="not allowed!"), TopicRule(source="good")]
        plan, report = await planned(flow_of(rules=rules), ends)
        assert [*plan.sources] == ["good"]
        assert "it cannot be created" in report.notes["not allowed!"]


async def test_a_topic_is_not_copied_to_itself(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        report = FlowReport("f")
        with pytest.raises(FlowStopped, match="orders would be copied to itself"):
            await TopicPlan(flow_of("orders"), ends.source, ends.source, report, LOGGER).refresh()


@pytest.mark.parametrize(
    ("rules", "letters", "line"),
    [
        ({"orders": "more", "more": "orders"}, None, "orders to more to orders would be copied in a circle"),
        (
            {"x": "orders", "orders": "b", "b": "c", "c": "orders"},
            None,
            "orders to b to c to orders would be copied in a circle",
        ),
        ({"orders": "more"}, "orders", "orders would be copied, and takes the dead letters"),
    ],
)
async def test_within_one_cluster_nothing_goes_round(
    tmp_path: Path, rules: dict[str, str], letters: str | None, line: str
) -> None:
    """Also where the topics are not there yet: the flow would create them."""
    spec = flow_of(
        rules=[TopicRule(source=one, target=to) for one, to in rules.items()], dead_letter_topic=letters
    )
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        with pytest.raises(FlowStopped, match=line):
            await TopicPlan(spec, ends.source, ends.source, FlowReport("f"), LOGGER).refresh()
        # Between two clusters the same rules are no circle.
        await TopicPlan(spec, ends.source, ends.target, FlowReport("f"), LOGGER).refresh()


def test_circles() -> None:
    assert circle_in({}) == []
    assert circle_in({"a": "b", "b": "c", "x": "b"}) == []
    assert circle_in({"x": "a", "a": "a"}) == ["a"]
    assert circle_in({"x": "a", "a": "b", "b": "a"}) == ["a", "b"]


async def test_within_one_cluster_a_topic_is_copied_to_another(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=2)
        records = numbered(50)
        await fill(ends.source, "orders", records, 1)
        rules = [TopicRule(source="orders", target="orders-copy")]
        await copy_all(flow_of(rules=rules, stop_at_end=True), ends.source, ends.source)
        assert await contents(ends.source, "orders-copy", 1) == records


async def test_several_partitions_go_into_one_and_nothing_comes_twice(tmp_path: Path) -> None:
    rules = [TopicRule(source="orders", target="merged", partition=0)]
    spec = flow_of(rules=rules, stop_at_end=True)
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=3)
        records = [numbered(60, first=1000 * number) for number in range(3)]
        for at in (0, 30):
            for number, some in enumerate(records):
                await fill(ends.source, "orders", some[at : at + 30], number)
            await copy_all(spec, ends.source, ends.target)
        found = await contents(ends.target, "merged")
        assert len(found) == 180
        for some in records:
            assert [record for record in found if record in some] == some


async def test_what_is_created_later_is_found(tmp_path: Path) -> None:
    rules = [TopicRule(source="o.*", is_pattern=True)]
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        async with flowing(flow_of(rules=rules, refresh_s=0.05), ends.source, ends.target) as report:
            await ends.source.create_topic("others", partitions=1)
            await fill(ends.source, "others", numbered(5))
            await ends.source.add_partitions("orders", 2)
            await fill(ends.source, "orders", numbered(7), 1)
            await until_position(report, TopicPartition("others", 0), 5)
            await until_position(report, TopicPartition("orders", 1), 7)


async def test_a_topic_that_a_rule_names_and_that_is_not_there_is_a_note(tmp_path: Path) -> None:
    spec = flow_of("orders", refresh_s=0.05)
    async with two_clusters(tmp_path) as ends, flowing(spec, ends.source, ends.target) as report:
        await eventually(lambda: "missing" in report.notes, "the note")
        assert report.notes["missing"] == "the source does not have orders"
        await ends.source.create_topic("orders", partitions=1)
        await fill(ends.source, "orders", numbered(5))
        await until_position(report, TopicPartition("orders", 0), 5)
        assert "missing" not in report.notes


async def test_a_flow_that_stops_at_the_end_waits_for_topics_that_are_missing(tmp_path: Path) -> None:
    spec = flow_of("orders", stop_at_end=True, refresh_s=0.05, creation=TopicCreation(create=False))
    async with two_clusters(tmp_path) as ends, flowing(spec, ends.source, ends.target) as report:
        await eventually(lambda: "missing" in report.notes, "the source's is missing")
        await ends.source.create_topic("orders", partitions=1)
        await fill(ends.source, "orders", numbered(5))
        await eventually(lambda: "orders" in report.notes, "the target's is missing")
        assert report.state is FlowState.RUNNING
        await ends.target.create_topic("orders", partitions=1)
        await until_state(report, FlowState.ENDED)
        assert len(await contents(ends.target, "orders")) == 5
