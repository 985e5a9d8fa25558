"""A flow as JSON: for the admin port, for the address of a relay, and for `--json` of the commands that read these."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leafcuttr_forward.flows.report import FlowReport, PartitionReport
    from leafcuttr_sdk.types import TopicPartition


def flow_row(report: "FlowReport", now_ms: int) -> dict[str, Any]:
    """One flow in a line: of all its partitions the sum of the lag in records, and the longest in seconds."""
    partitions = report.partitions.values()
    return {
        "flow": report.name,
        "state": report.state.value,
        "source": report.source,
        "target": report.target,
        "guarantee": "exactly once" if report.exactly_once else "at least once",
        "partitions": len(report.partitions),
        "read": sum(each.read_records for each in partitions),
        "written": sum(each.written_records for each in partitions),
        "dropped": sum(each.dropped_records for each in partitions),
        "dead_letters": sum(each.dead_letters for each in partitions),
        "lost": sum(each.lost_records for each in partitions),
        "lag_records": report.lag,
        "lag_seconds": max((each.lag_s(now_ms) for each in partitions), default=0.0),
        "trouble": trouble_of(report),
    }


def flow_details(report: "FlowReport", now_ms: int) -> dict[str, Any]:
    """All that is known of one flow; `topics` has a row for each partition of the source."""
    return {
        **flow_row(report, now_ms),
        "notes": dict(report.notes),
        "restarts": report.restarts,
        "switches": report.switches,
        "transactions": report.transactions,
        "buffered_bytes": report.buffered_bytes,
        "events": dict(report.events),
        "topics": [partition_row(*pair, now_ms) for pair in sorted(report.partitions.items())],
    }


def partition_row(source: "TopicPartition", report: "PartitionReport", now_ms: int) -> dict[str, Any]:
    """One partition of the source, with the offsets on both sides: null where one is not known yet. `target_partition`
    is null where keys decide, `target_partitions` are those that this process has written to."""
    return {
        "topic": source.topic,
        "partition": source.partition,
        "target_topic": report.target_topic,
        "target_partition": report.target_partition,
        "target_partitions": sorted(
            each.partition for each in report.written_to if each.topic == report.target_topic
        ),
        "position": _known(report.position),
        "end": _known(report.end),
        "target_offset": _known(report.target_offset),
        "lag_records": report.lag,
        "lag_seconds": report.lag_s(now_ms),
        "read": report.read_records,
        "written": report.written_records,
        "written_bytes": report.written_bytes,
        "dropped": report.dropped_records,
        "dead_letters": report.dead_letters,
        "lost": report.lost_records,
        "trouble": report.trouble,
    }


def trouble_of(report: "FlowReport") -> str | None:
    """The first line of what keeps the flow, or one of its partitions, from going on."""
    return report.trouble or next(iter(report.troubles), None)


def _known(offset: int) -> int | None:
    return None if offset < 0 else offset
