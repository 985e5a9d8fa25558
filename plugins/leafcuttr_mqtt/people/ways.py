"""The metrics and health checks of bridges and of the ways down from Kafka topics, for each of them."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from leafcuttr_mqtt.bridge.names import BRIDGE
from leafcuttr_mqtt.mapping.settings import EGRESS
from leafcuttr_mqtt.people.current import running_of
from leafcuttr_sdk.admin import Finding, HealthCheck
from leafcuttr_sdk.metrics import Metric, Sample, counter, gauge

if TYPE_CHECKING:
    from leafcuttr_mqtt.bridge.contract import LiveBridge
    from leafcuttr_mqtt.server.running import Running
    from leafcuttr_sdk.broker import Broker

Read = Callable[["Running"], Iterable[Sample]]


def ways_checks(broker: "Broker") -> Iterator[HealthCheck]:
    """One for bridges and one for the ways down, where there are any."""

    def bridges() -> Finding:
        running = running_of(broker)
        if running is None:
            return Finding(False, "it is not running")
        away = [_away(each) for each in running.bridges if each.connected_to is None]
        return Finding(not away, "; ".join(away) or f"{len(running.bridges)} connected")

    def egress() -> Finding:
        running = running_of(broker)
        if running is None or running.egress is None:
            return Finding(False, "it is not running")
        counts = running.egress.counts
        waits = [f"{topic}: {each.trouble}" for topic, each in counts.items() if each.trouble]
        lag = sum(running.egress.lag(topic) for topic in counts)
        return Finding(not waits, "; ".join(waits) or f"{len(counts)} topics, {lag} records behind")

    if broker.settings.family(BRIDGE):
        yield HealthCheck("bridges", "bridges are connected to their other brokers", bridges)
    if broker.settings.family(EGRESS):
        yield HealthCheck("egress", "records of Kafka topics are published to MQTT", egress)


def _away(bridge: "LiveBridge") -> str:
    return f"bridge {bridge.bridge.name} is not connected: {bridge.why_not or 'it is connecting'}"


def _of_bridges(value: "Callable[[LiveBridge], float]") -> Read:
    return lambda running: [((each.bridge.name,), value(each)) for each in running.bridges]


def _bridge_messages(running: "Running") -> Iterator[Sample]:
    for each in running.bridges:
        counts = each.counts
        yield (each.bridge.name, "in"), counts.received
        yield (each.bridge.name, "out"), counts.sent


def _bridge_drops(running: "Running") -> Iterator[Sample]:
    for each in running.bridges:
        for reason, count in each.counts.drops.items():
            yield (each.bridge.name, reason), count


def _published(running: "Running") -> Iterator[Sample]:
    if running.egress is not None:
        for topic, counts in running.egress.counts.items():
            yield (topic,), counts.published


def _left_out(running: "Running") -> Iterator[Sample]:
    if running.egress is not None:
        for topic, counts in running.egress.counts.items():
            yield (topic, "refused"), counts.refused
            for left, count in counts.left.items():
                yield (topic, left.label), count


def _lag(running: "Running") -> Iterator[Sample]:
    if running.egress is not None:
        for topic in running.egress.counts:
            yield (topic,), running.egress.lag(topic)


def _waits(running: "Running") -> Iterator[Sample]:
    if running.egress is not None:
        for topic, counts in running.egress.counts.items():
            yield (topic,), bool(counts.trouble)


OF_WAYS: tuple[tuple[Metric, Read], ...] = (
    (
        gauge("leafcuttr_mqtt_bridge_connected", "1 while the bridge is connected, else 0.", "bridge"),
        _of_bridges(lambda each: each.connected_to is not None),
    ),
    (
        counter("leafcuttr_mqtt_bridge_connections_total", "Connections of the bridge.", "bridge"),
        _of_bridges(lambda each: each.connections),
    ),
    (
        counter(
            "leafcuttr_mqtt_bridge_messages_total",
            "Messages that have come in over the bridge, or have gone out, those sent again among them.",
            "bridge",
            "direction",
        ),
        _bridge_messages,
    ),
    (
        counter(
            "leafcuttr_mqtt_bridge_messages_dropped_total",
            "Messages that could not go over the bridge.",
            "bridge",
            "reason",
        ),
        _bridge_drops,
    ),
    (
        gauge(
            "leafcuttr_mqtt_bridge_queued_messages",
            "Messages that wait for the other broker in the session of the bridge.",
            "bridge",
        ),
        _of_bridges(lambda each: each.waiting),
    ),
    (
        gauge("leafcuttr_mqtt_bridge_queued_bytes", "Bytes of these messages.", "bridge"),
        _of_bridges(lambda each: each.waiting_bytes),
    ),
    (
        gauge(
            "leafcuttr_mqtt_bridge_inflight_messages",
            "Messages that the other broker has not acknowledged.",
            "bridge",
        ),
        _of_bridges(lambda each: each.in_flight),
    ),
    (
        counter(
            "leafcuttr_mqtt_egress_messages_total", "Records of the Kafka topic that were published.", "topic"
        ),
        _published,
    ),
    (
        counter(
            "leafcuttr_mqtt_egress_left_out_total",
            "Records of the Kafka topic that were not published.",
            "topic",
            "reason",
        ),
        _left_out,
    ),
    (
        gauge(
            "leafcuttr_mqtt_egress_lag_records",
            "Records of the Kafka topic that are not published yet.",
            "topic",
        ),
        _lag,
    ),
    (
        gauge("leafcuttr_mqtt_egress_waiting", "1 while records cannot be published, else 0.", "topic"),
        _waits,
    ),
)
