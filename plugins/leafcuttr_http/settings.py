"""What can be set, and the values as the proxy uses them."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr_sdk.settings import Setting, Type, listener_settings

if TYPE_CHECKING:
    from leafcuttr_sdk.settings import Settings

PREFIX: Final = "lc.http.proxy"
PORT: Final = 8080

_OWN: Final = (
    Setting(f"{PREFIX}.enable", Type.BOOLEAN, False, "Serve records over HTTP."),
    Setting(
        f"{PREFIX}.max.connections",
        Type.INT,
        1000,
        "How many connections the proxy keeps at a time. One more is answered with 503 and closed.",
        minimum=1,
        maximum=1_000_000,
    ),
    Setting(
        f"{PREFIX}.max.request.bytes",
        Type.INT,
        10 * 1024 * 1024,
        "The largest body of a request, also once it is decompressed. A larger one is answered with 413 before it is "
        "read. A bulk upload (application/x-ndjson) may be of any length.",
        unit="bytes",
        minimum=1024,
        maximum=1024 * 1024 * 1024,
    ),
    Setting(
        f"{PREFIX}.max.buffered.bytes",
        Type.LONG,
        64 * 1024 * 1024,
        "The memory for the bodies of all requests under way; what comes beyond it is answered with 503.",
        unit="bytes",
        minimum=1024,
        maximum=2**40,
    ),
    Setting(
        f"{PREFIX}.max.record.bytes",
        Type.INT,
        1536 * 1024,
        "The longest JSON text of one record, in a request or on a line of a bulk upload. It is parsed in one go: "
        "about a millisecond for 20 KB.",
        unit="bytes",
        minimum=1024,
        maximum=128 * 1024 * 1024,
    ),
    Setting(
        f"{PREFIX}.request.timeout.ms",
        Type.INT,
        30_000,
        "How long the body of a request may take to arrive, and then the answer to be made. A bulk upload has this "
        "time for each piece of it, a client for taking each piece of an answer.",
        unit="ms",
        minimum=10,
        maximum=3_600_000,
    ),
    Setting(
        f"{PREFIX}.idle.timeout.ms",
        Type.INT,
        60_000,
        "How long a connection may wait for the next request, and for its head to be complete.",
        unit="ms",
        minimum=10,
        maximum=86_400_000,
    ),
    Setting(
        f"{PREFIX}.max.streams",
        Type.INT,
        1000,
        "How many event streams and WebSockets the proxy serves at a time. One more is answered with 503.",
        minimum=0,
        maximum=1_000_000,
    ),
    Setting(
        f"{PREFIX}.stream.buffer.bytes",
        Type.INT,
        1024 * 1024,
        "What may wait for a stream whose client does not take it, kept once for all streams of a topic. Beyond it the "
        "stream reads from the log by itself until it has caught up.",
        unit="bytes",
        minimum=1024,
        maximum=1024 * 1024 * 1024,
    ),
    Setting(
        f"{PREFIX}.stream.heartbeat.ms",
        Type.INT,
        15_000,
        "How long a stream may be silent: then it says where it is.",
        unit="ms",
        minimum=100,
        maximum=3_600_000,
    ),
    Setting(
        f"{PREFIX}.consumer.max",
        Type.INT,
        1000,
        "How many consumers clients may have at a time. One more is refused with 503.",
        minimum=0,
        maximum=1_000_000,
    ),
    Setting(
        f"{PREFIX}.consumer.idle.timeout.ms",
        Type.INT,
        300_000,
        "How long a consumer is kept that nobody uses. It also bounds how long a read may wait.",
        unit="ms",
        minimum=100,
        maximum=86_400_000,
    ),
    Setting(
        f"{PREFIX}.consumer.max.response.bytes",
        Type.INT,
        4 * 1024 * 1024,
        "The bytes of keys and values that a read of a consumer answers with at most, whatever max_bytes it names; a "
        "first record that has more is answered with alone.",
        unit="bytes",
        minimum=1024,
        maximum=1024 * 1024 * 1024,
    ),
    Setting(
        f"{PREFIX}.idempotency.max.bytes",
        Type.INT,
        16 * 1024 * 1024,
        "The memory for answers that are kept by Idempotency-Key, for ten minutes each; beyond it the oldest go "
        "first. 0 switches the header off: such requests are refused.",
        unit="bytes",
        minimum=0,
        maximum=1024 * 1024 * 1024,
    ),
    Setting(
        f"{PREFIX}.cors.allowed.origins",
        Type.LIST,
        (),
        "Origins whose pages may call the proxy from a browser, as https://example.com; * for every one.",
    ),
)


def settings() -> Iterator[Setting]:
    """All settings of the plugin."""
    yield from _OWN[:1]
    yield from listener_settings(PREFIX, PORT)
    yield from _OWN[1:]


class Limits(NamedTuple):
    """The settings in the units that the code uses: bytes and seconds."""

    connections: int
    request_bytes: int
    buffered_bytes: int
    record_bytes: int
    request_s: float
    idle_s: float
    streams: int
    stream_buffer: int
    heartbeat_s: float
    consumers: int
    consumer_idle_s: float
    consumer_response_bytes: int
    idempotency_bytes: int
    origins: frozenset[str]


def read_limits(values: "Settings") -> Limits:
    return Limits(
        connections=values.int(f"{PREFIX}.max.connections"),
        request_bytes=values.int(f"{PREFIX}.max.request.bytes"),
        buffered_bytes=values.int(f"{PREFIX}.max.buffered.bytes"),
        record_bytes=values.int(f"{PREFIX}.max.record.bytes"),
        request_s=values.int(f"{PREFIX}.request.timeout.ms") / 1000,
        idle_s=values.int(f"{PREFIX}.idle.timeout.ms") / 1000,
        streams=values.int(f"{PREFIX}.max.streams"),
        stream_buffer=values.int(f"{PREFIX}.stream.buffer.bytes"),
        heartbeat_s=values.int(f"{PREFIX}.stream.heartbeat.ms") / 1000,
        consumers=values.int(f"{PREFIX}.consumer.max"),
        consumer_idle_s=values.int(f"{PREFIX}.consumer.idle.timeout.ms") / 1000,
        consumer_response_bytes=values.int(f"{PREFIX}.consumer.max.response.bytes"),
        idempotency_bytes=values.int(f"{PREFIX}.idempotency.max.bytes"),
        origins=_origins(values.list(f"{PREFIX}.cors.allowed.origins")),
    )


def _origins(values: Iterable[str]) -> frozenset[str]:
    return frozenset(value.rstrip("/").lower() for value in values if value)
