"""The metrics of the MQTT broker, as `/metrics` shows them. They are read when they are asked for; what needs a look at
all sessions is as it was at the last one, ten seconds ago at most."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from leafcuttr_mqtt.people.current import running_of
from leafcuttr_mqtt.people.ways import OF_WAYS
from leafcuttr_sdk.metrics import Metric, MetricReading, Sample, counter, gauge

if TYPE_CHECKING:
    from leafcuttr_mqtt.server.running import Running
    from leafcuttr_sdk.broker import Broker

Read = Callable[["Running"], Iterable[Sample]]


def readings(broker: "Broker") -> Iterator[MetricReading]:
    def reading(metric: Metric, read: Read) -> MetricReading:
        def look() -> Iterable[Sample]:
            running = running_of(broker)
            return () if running is None else read(running)

        return MetricReading(metric, look)

    for metric, read in (*_ALL, *OF_WAYS):
        yield reading(metric, read)


def _one(value: "Callable[[Running], float]") -> Read:
    return lambda running: [((), value(running))]


def _by_qos(value: "Callable[[Running], list[int]]") -> Read:
    return lambda running: [((str(qos),), count) for qos, count in enumerate(value(running))]


def _ways(received: "Callable[[Running], int]", sent: "Callable[[Running], int]") -> Read:
    return lambda running: [(("received",), received(running)), (("sent",), sent(running))]


def _drops(running: "Running") -> Iterable[Sample]:
    return [((reason.value,), count) for reason, count in running.hub.drops.items()]


def _sessions(running: "Running") -> Iterable[Sample]:
    connected = running.hub.connected
    return [(("connected",), connected), (("away",), len(running.hub.clients) - connected)]


def _oldest(running: "Running") -> float:
    oldest = running.seen.oldest_ms
    return 0.0 if oldest is None else max(0, running.now_ms() - oldest) / 1000


_ALL: tuple[tuple[Metric, Read], ...] = (
    (
        gauge("leafcuttr_mqtt_sessions", "Sessions, by whether their clients are connected.", "state"),
        _sessions,
    ),
    (
        counter("leafcuttr_mqtt_clients_accepted_total", "Clients that have connected."),
        _one(lambda running: running.counts.accepted),
    ),
    (
        counter("leafcuttr_mqtt_clients_refused_total", "Clients that were refused by CONNACK."),
        _one(lambda running: running.counts.refused),
    ),
    (
        counter("leafcuttr_mqtt_packets_total", "Packets from clients and to clients.", "direction"),
        _ways(lambda running: running.counts.packets_received, lambda running: running.counts.packets_sent),
    ),
    (
        counter("leafcuttr_mqtt_bytes_total", "Bytes of packets from clients and to clients.", "direction"),
        _ways(lambda running: running.counts.bytes_received, lambda running: running.counts.bytes_sent),
    ),
    (
        counter("leafcuttr_mqtt_messages_received_total", "Messages from clients.", "qos"),
        _by_qos(lambda running: running.counts.received),
    ),
    (
        counter(
            "leafcuttr_mqtt_messages_sent_total", "Messages to clients, those sent again among them.", "qos"
        ),
        _by_qos(lambda running: running.counts.sent),
    ),
    (
        counter("leafcuttr_mqtt_messages_dropped_total", "Messages that a session has given up.", "reason"),
        _drops,
    ),
    (
        counter(
            "leafcuttr_mqtt_messages_refused_total",
            "Messages from clients that are not allowed, or that a Kafka topic can never take.",
        ),
        _one(lambda running: running.refused),
    ),
    (
        gauge("leafcuttr_mqtt_queued_messages", "Messages that wait in sessions."),
        _one(lambda running: running.seen.waiting),
    ),
    (
        gauge("leafcuttr_mqtt_queued_bytes", "Bytes of the messages that wait in sessions."),
        _one(lambda running: running.seen.waiting_bytes),
    ),
    (
        gauge(
            "leafcuttr_mqtt_queue_age_seconds",
            "How long the oldest message has been waiting. 0 if none is.",
        ),
        _one(_oldest),
    ),
    (
        gauge("leafcuttr_mqtt_inflight_messages", "Messages that clients have not acknowledged."),
        _one(lambda running: running.seen.in_flight),
    ),
    (
        gauge("leafcuttr_mqtt_subscriptions", "Subscriptions of all sessions."),
        _one(lambda running: len(running.hub.router.subscriptions)),
    ),
    (
        gauge("leafcuttr_mqtt_retained_messages", "Retained messages."),
        _one(lambda running: len(running.hub.retained)),
    ),
    (
        gauge("leafcuttr_mqtt_retained_bytes", "Bytes of the payloads of retained messages."),
        _one(lambda running: running.hub.retained.bytes),
    ),
)
