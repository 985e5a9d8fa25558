"""What can be set, and the values as the broker uses them. Those of mappings and bridges are in `mapping.settings` and
`bridge.settings`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr_sdk.settings import (
    Setting,
    Type,
    authentication_settings,
    serving_settings,
    websocket_settings,
)

if TYPE_CHECKING:
    from leafcuttr_sdk.settings import Settings, Value

ENABLE: Final = "lc.mqtt.broker.enable"
PREFIX: Final = "mqtt"
PORT: Final = 1883
HOST: Final = "0.0.0.0"
TLS: Final = f"{PREFIX}.tls"
WEBSOCKETS: Final = f"{PREFIX}.ws"
TLS_WEBSOCKETS: Final = f"{PREFIX}.wss"
LISTENERS: Final = (PREFIX, TLS, WEBSOCKETS, TLS_WEBSOCKETS)
SECURE: Final = (TLS, TLS_WEBSOCKETS)
OVER_WEBSOCKET: Final = (WEBSOCKETS, TLS_WEBSOCKETS)
WAYS: Final = ("none", "basic", "mtls", "sasl")
"""How a client can authenticate: with the user name and password of CONNECT, with its certificate, by the packets AUTH
of 5.0."""
LARGEST_PACKET: Final = 268_435_460
"""What the specification allows: 256 MiB, with its header (2.1.4)."""
NEVER_S: Final = 0xFFFFFFFF
"""A session expiry interval that does not expire (3.1.2.11.2)."""


def _why_empty(value: "Value") -> str | None:
    # As a variable that was never set is in many files: it must not let everybody in.
    return None if value else "it is empty; without it and its counterpart every client is accepted"


def why_no_pair(values: "Settings") -> str | None:
    """Why there is half a pair of user name and password, in one clause."""
    given = {name: bool(values.optional_text(f"{PREFIX}.auth.{name}")) for name in ("username", "password")}
    missing = next((name for name, there in given.items() if not there), None)
    if missing is None or not any(given.values()):
        return None
    return f"{PREFIX}.auth.{missing} is not set: set both or neither"


_OWN: Final = (
    Setting(
        f"{PREFIX}.auth.username",
        Type.STRING,
        None,
        "The user name that clients have to send, with the password of mqtt.auth.password. Without the two every "
        "client is accepted, whatever it sends, unless mqtt.auth says otherwise.",
        check=_why_empty,
        check_with_others=lambda _, values: why_no_pair(values),
    ),
    Setting(
        f"{PREFIX}.auth.password",
        Type.PASSWORD,
        None,
        "The password that clients have to send, with the user name of mqtt.auth.username.",
        check=_why_empty,
        check_with_others=lambda _, values: why_no_pair(values),
    ),
    Setting(
        f"{PREFIX}.max.packet.bytes",
        Type.INT,
        1024 * 1024,
        "The largest packet that a client may send. A larger one ends its connection before it is read.",
        unit="bytes",
        minimum=1024,
        maximum=LARGEST_PACKET,
    ),
    Setting(
        f"{PREFIX}.max.inflight",
        Type.INT,
        100,
        "How many messages with QoS 1 and 2 may be on their way, without an acknowledgement, to a client, and from a "
        "client of 5.0 (its receive maximum may be lower).",
        minimum=1,
        maximum=65_534,
    ),
    Setting(
        f"{PREFIX}.session.max.messages",
        Type.INT,
        100_000,
        "How many messages may wait for a session. Beyond it the oldest are dropped, those with QoS 0 first.",
        minimum=1,
        maximum=1_000_000_000,
    ),
    Setting(
        f"{PREFIX}.session.max.bytes",
        Type.LONG,
        100 * 1024 * 1024,
        "How many bytes of messages may wait for a session. Beyond it the oldest are dropped, those with QoS 0 first.",
        unit="bytes",
        minimum=1024,
        maximum=1024**4,
    ),
    Setting(
        f"{PREFIX}.session.max.subscriptions",
        Type.INT,
        10_000,
        "How many subscriptions a session may have. Another one is refused, as one is that brings the filters of the "
        "session above two million characters.",
        minimum=1,
        maximum=1_000_000,
    ),
    Setting(
        f"{PREFIX}.session.expiry.max.ms",
        Type.LONG,
        7 * 24 * 3_600_000,
        "How long a session is kept at most after its connection has ended, also where the client asks for longer or, "
        "as clients of 3.1.1 do, for ever; -1: without limit.",
        unit="ms",
        minimum=-1,
        maximum=(NEVER_S - 1) * 1000,
    ),
    Setting(
        f"{PREFIX}.keep.alive.max.ms",
        Type.INT,
        0,
        "The longest keep alive of a client: one of 5.0 that asks for a longer one, or for none, is told this one; the "
        "connection of another is held to it all the same. 0: without limit.",
        unit="ms",
        minimum=0,
        maximum=65_535_000,
    ),
    Setting(
        f"{PREFIX}.retain.enable",
        Type.BOOLEAN,
        True,
        "Keep retained messages. Without it a message with the RETAIN flag is refused in 5.0, and is published as any "
        "other in 3.1.1.",
    ),
    Setting(
        f"{PREFIX}.persistence.enable",
        Type.BOOLEAN,
        True,
        "Keep sessions, their messages, retained messages and wills in internal topics, so that they are there after a "
        "restart. Without it they are in memory only.",
    ),
)

_HELP: Final = {
    "authenticators": "The authenticators that check the credentials of clients, in their order, after the pair of "
    "mqtt.auth.username; plugins bring them.",
}


def settings() -> Iterator[Setting]:
    """All settings of the plugin, but those of the parts that have modules of their own for them."""
    yield Setting(ENABLE, Type.BOOLEAN, False, "Run the MQTT broker.")
    yield from serving_settings(PREFIX, PORT, HOST, idle_timeout_ms=0)
    yield from _OWN
    for setting in authentication_settings(PREFIX, ways=WAYS):
        name = setting.name.removeprefix(f"{PREFIX}.")
        with_others = _why_no_use if name == "authenticators" else None
        yield setting._replace(help=_HELP.get(name, setting.help), check_with_others=with_others)
    for listener in LISTENERS[1:]:
        declared = websocket_settings if listener in OVER_WEBSOCKET else serving_settings
        for setting in declared(listener, -1, HOST, idle_timeout_ms=0):
            opens = listener in SECURE and setting.name.removeprefix(f"{listener}.") in ("port", "unix.path")
            yield setting._replace(check_with_others=_why_no_tls) if opens else setting


def _why_no_use(_: str, values: "Settings") -> str | None:
    # The broker would be open, and its owner believe that it is not.
    if values.list(f"{PREFIX}.authenticators") and not set(values.list(f"{PREFIX}.auth")) - {"none"}:
        return f"{PREFIX}.auth offers no way to authenticate: set it too, as {PREFIX}.auth=basic"
    return None


def _why_no_tls(name: str, values: "Settings") -> str | None:
    listener = next(each for each in SECURE if name.startswith(f"{each}."))
    if not is_open(values, listener) or values.optional_text(f"{listener}.ssl.keystore.location"):
        return None
    return f"it opens a listener for TLS, and {listener}.ssl.keystore.location is not set"


def is_open(values: "Settings", listener: str) -> bool:
    """Whether a listener has an address."""
    return values.int(f"{listener}.port") >= 0 or bool(values.optional_text(f"{listener}.unix.path"))


class Options(NamedTuple):
    """The settings in the units that the code uses: bytes, seconds, milliseconds."""

    user_name: str | None
    password: bytes | None
    max_packet_bytes: int
    max_inflight: int
    session_messages: int
    session_bytes: int
    session_subscriptions: int
    session_expiry_s: int
    """`NEVER_S`: without limit."""
    keep_alive_s: int
    """0: without limit."""
    retain: bool
    persistence: bool


def read_options(values: "Settings") -> Options:
    user_name = values.optional_text(f"{PREFIX}.auth.username") or None
    password = values.optional_text(f"{PREFIX}.auth.password") or None
    expiry_ms = values.int(f"{PREFIX}.session.expiry.max.ms")
    keep_alive_ms = values.int(f"{PREFIX}.keep.alive.max.ms")
    return Options(
        user_name=user_name,
        password=None if password is None else password.encode(),
        max_packet_bytes=values.int(f"{PREFIX}.max.packet.bytes"),
        max_inflight=values.int(f"{PREFIX}.max.inflight"),
        session_messages=values.int(f"{PREFIX}.session.max.messages"),
        session_bytes=values.int(f"{PREFIX}.session.max.bytes"),
        session_subscriptions=values.int(f"{PREFIX}.session.max.subscriptions"),
        session_expiry_s=NEVER_S if expiry_ms < 0 else expiry_ms // 1000,
        keep_alive_s=-(-keep_alive_ms // 1000),
        retain=values.bool(f"{PREFIX}.retain.enable"),
        persistence=values.bool(f"{PREFIX}.persistence.enable"),
    )
