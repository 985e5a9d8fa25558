"""What can be set, and the values as the proxy uses them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr_sdk.settings import Setting, Type
from leafcuttr_sdk.web.settings import read_limits as read_web_limits
from leafcuttr_sdk.web.settings import web_settings

if TYPE_CHECKING:
    from leafcuttr_sdk.settings import Settings

PREFIX: Final = "lc.http.proxy"
PORT: Final = 8080
PASSWORDS_FILE: Final = f"{PREFIX}.passwords.file"
AUTHENTICATOR: Final = "http-passwords"
AUTHENTICATORS: Final = (AUTHENTICATOR, "broker")
"""The default: the names in the file, then the users of the broker."""

_HELP: Final = {
    "max.connections": "How many connections the proxy keeps at a time. One more is answered with 503 and closed.",
    "max.request.bytes": "The largest body of a request, also once it is decompressed. A larger one is answered with "
    "413 before it is read. A bulk upload (application/x-ndjson) may be of any length.",
    "request.timeout.ms": "How long the body of a request may take to arrive, and then the answer to be made. A bulk "
    "upload has this time for each piece of it, a client for taking each piece of an answer.",
    "cors.allowed.origins": "Origins whose pages may call the proxy from a browser, as https://example.com; * for "
    "every one.",
}
"""What is said of the settings of every HTTP service where the proxy has more to say."""

_OWN: Final = (
    Setting(f"{PREFIX}.enable", Type.BOOLEAN, False, "Serve records over HTTP."),
    Setting(
        PASSWORDS_FILE,
        Type.STRING,
        None,
        "A file of names and hashes of passwords, written by `leafcuttr http passwd`, for the authenticator "
        f"{AUTHENTICATOR}. It is read again when it changes.",
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
        "How long an unused consumer is kept. It also bounds how long a read may wait.",
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
)


def settings() -> Iterator[Setting]:
    """All settings of the plugin."""
    yield from _OWN[:1]
    for setting in web_settings(PREFIX, PORT):
        name = setting.name.removeprefix(f"{PREFIX}.")
        if name == "authenticators":
            setting = setting._replace(default=AUTHENTICATORS)
        yield setting._replace(help=_HELP.get(name, setting.help))
    yield from _OWN[1:]


class Limits(NamedTuple):
    """The settings of the endpoints in the units that the code uses: bytes and seconds. Those of the server are
    `leafcuttr_sdk.web.settings.WebLimits`."""

    record_bytes: int
    request_s: float
    streams: int
    stream_buffer: int
    heartbeat_s: float
    consumers: int
    consumer_idle_s: float
    consumer_response_bytes: int
    idempotency_bytes: int
    origins: frozenset[str]


def read_limits(values: "Settings") -> Limits:
    web = read_web_limits(values, PREFIX)
    return Limits(
        record_bytes=values.int(f"{PREFIX}.max.record.bytes"),
        request_s=web.request_s,
        streams=values.int(f"{PREFIX}.max.streams"),
        stream_buffer=values.int(f"{PREFIX}.stream.buffer.bytes"),
        heartbeat_s=values.int(f"{PREFIX}.stream.heartbeat.ms") / 1000,
        consumers=values.int(f"{PREFIX}.consumer.max"),
        consumer_idle_s=values.int(f"{PREFIX}.consumer.idle.timeout.ms") / 1000,
        consumer_response_bytes=values.int(f"{PREFIX}.consumer.max.response.bytes"),
        idempotency_bytes=values.int(f"{PREFIX}.idempotency.max.bytes"),
        origins=web.origins,
    )
