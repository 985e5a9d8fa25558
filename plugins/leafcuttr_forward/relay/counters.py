"""What a relay counts under kaf-relay's names: those of its README and those that it has today, so that its dashboards
go on. Counts begin anew with the process, as there."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from leafcuttr_forward.people.exposition import OtherMetric

if TYPE_CHECKING:
    from leafcuttr_forward.flows.report import FlowReport, Written
    from leafcuttr_forward.relay.pool import SourcePool

_RELAYED: Final = ("source_topic", "source_partition", "target_topic", "target_partition")
_NODE: Final = ("node_id",)


class RelayCounters:
    """Counts what flows have written: `count` is one of `FlowReport.on_written`."""

    def __init__(self, report: "FlowReport", pool: "SourcePool") -> None:
        self._report = report
        self._pool = pool
        self._relayed: Counter[tuple[str, str, str, str]] = Counter()
        self.unhealthy = 0
        """How often no source could be read."""
        self.connections: Counter[int] = Counter()
        """How often each source was begun with."""
        self.lagging: Counter[int] = Counter()
        """How often each source was left because it lagged."""
        report.on_written.append(self.count)

    def count(self, written: "Sequence[Written]") -> None:
        """Records that are at the target for good."""
        for one in written:
            source, target = one.source, one.target
            self._relayed[source.topic, str(source.partition), target.topic, str(target.partition)] += (
                one.records
            )

    @property
    def total(self) -> int:
        """Records that were relayed, in all."""
        return self._relayed.total()

    def metrics(self) -> Iterator[OtherMetric]:
        """For the address of metrics."""
        counts: Counter[tuple[str, str, str]] = Counter()
        for (topic, partition, target, _), records in self._relayed.items():
            counts[topic, target, partition] += records
        yield OtherMetric(
            "kafka_relay_msg_count",
            "Records that are at the target, by topic and partition of the source.",
            ("source", "destination", "partition"),
            [(labels, float(records)) for labels, records in counts.items()],
        )
        yield OtherMetric(
            "kafka_relay_messages_relayed_total",
            "Records that are at the target, by the partitions of both.",
            _RELAYED,
            [(labels, float(records)) for labels, records in self._relayed.items()],
        )
        dropped = sum(each.dropped_records for each in self._report.partitions.values())
        yield OtherMetric(
            "kafka_relay_messages_filtered_total",
            "Records that filters left out.",
            (),
            [((), float(dropped))],
        )
        yield OtherMetric(
            "kafka_relay_source_candidate_switches_total",
            "Switches of source.",
            (),
            [((), float(self._pool.switches))],
        )
        yield OtherMetric(
            "kafka_relay_source_unhealthy_total",
            "Rounds of probes that no source answered.",
            (),
            [((), float(self.unhealthy))],
        )
        yield OtherMetric(
            "kafka_relay_source_highwatermark",
            "The sum of the end offsets of each source.",
            _NODE,
            [((str(index),), float(each.weight)) for index, each in enumerate(self._pool.sources)],
        )
        for name, help, counted in (
            ("source_connections_total", "How often each source was begun with.", self.connections),
            ("source_lag_threshold_exceeded_total", "How often each source lagged too far.", self.lagging),
        ):
            samples = [((str(index),), float(count)) for index, count in sorted(counted.items())]
            yield OtherMetric(f"kafka_relay_{name}", help, _NODE, samples)
