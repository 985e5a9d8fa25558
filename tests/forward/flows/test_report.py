"""What a flow says of itself."""

from __future__ import annotations

from leafcuttr_forward.flows.report import FlowReport, FlowState, PartitionReport
from leafcuttr_sdk.types import TopicPartition


def test_lag_in_offsets_and_seconds() -> None:
    report = PartitionReport("t", position=5, end=12, timestamp=10_000)
    assert (report.lag, report.lag_s(13_500)) == (7, 3.5)
    assert report.lag_s(9_000) == 0
    report.position = 12
    assert (report.lag, report.lag_s(13_500)) == (0, 0)
    assert PartitionReport("t", end=12).lag == 0


def test_trouble_is_the_flows_own_before_that_of_its_clusters() -> None:
    report = FlowReport("f")
    assert report.trouble is None
    assert report.is_well
    report.cluster_trouble = lambda: "no broker answers"
    assert report.trouble == "no broker answers"
    report.trouble = "another process may have it"
    assert (report.trouble, report.is_well) == ("another process may have it", False)
    report.trouble, report.cluster_trouble = None, None
    report.partitions[TopicPartition("a", 0)] = PartitionReport("t", position=0, end=3, trouble="deleted")
    assert (report.troubles, report.is_well, report.lag) == (["a-0: deleted"], False, 3)
    report.partitions.clear()
    report.state = FlowState.STOPPED
    assert not report.is_well
