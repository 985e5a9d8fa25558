"""What is counted under kaf-relay's names."""

from __future__ import annotations

from leafcuttr_forward.flows.report import FlowReport, PartitionReport, Written
from leafcuttr_forward.relay.counters import RelayCounters
from leafcuttr_forward.relay.pool import Range, SourcePool
from leafcuttr_sdk.types import TopicPartition

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_all_of_them() -> None:
    report, pool = FlowReport("f"), SourcePool(["a", "b"], lag_threshold=10)
    counters = RelayCounters(report, pool)
    report.partitions[ONE] = PartitionReport("copy", dropped_records=3)
    report.partitions[TWO] = PartitionReport("copy", dropped_records=4)
    for source, target, records in ((ONE, 0, 5), (TWO, 0, 7), (TWO, 1, 2), (ONE, 0, 1)):
        written = Written(source, 0, records, TopicPartition("copy", target), 0, records, 100)
        for each in report.on_written:
            each([written])
    pool.answered(0, {ONE: Range(2, 40), TWO: Range(0, 2)})
    pool.switches = 6
    counters.unhealthy = 8
    counters.connections.update({0: 2, 1: 1})
    counters.lagging[1] += 9
    found = {one.name: {tuple(labels): value for labels, value in one.samples} for one in counters.metrics()}
    assert found == {
        "kafka_relay_msg_count": {("orders", "copy", "0"): 6.0, ("orders", "copy", "1"): 9.0},
        "kafka_relay_messages_relayed_total": {
            ("orders", "0", "copy", "0"): 6.0,
            ("orders", "1", "copy", "0"): 7.0,
            ("orders", "1", "copy", "1"): 2.0,
        },
        "kafka_relay_messages_filtered_total": {(): 7.0},
        "kafka_relay_source_candidate_switches_total": {(): 6.0},
        "kafka_relay_source_unhealthy_total": {(): 8.0},
        "kafka_relay_source_highwatermark": {("0",): 42.0, ("1",): 0.0},
        "kafka_relay_source_connections_total": {("0",): 2.0, ("1",): 1.0},
        "kafka_relay_source_lag_threshold_exceeded_total": {("1",): 9.0},
    }
    assert counters.total == 15
