"""Settings of plugins: what they are declared with, and how their values are read. The broker collects the values:
from the file, `KAFKA_*` variables, `-o`, and for dynamic ones the admin API."""

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple, Protocol, TypeAlias

from leafcuttr_sdk._described import described

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


WAYS: Final = ("none", "basic", "bearer", "mtls", "sasl")
"""How a client can authenticate: not at all, with name and password, with a bearer token, with a certificate, by the
steps of a SASL mechanism. HTTP has the first four."""


class Type(Enum):
    """The type of a setting's value, by Kafka's name for it, and what Python gets."""

    BOOLEAN = "boolean"
    """bool"""
    STRING = "string"
    """str, or None where that is the default"""
    INT = "int"
    """int of 32 bits"""
    LONG = "long"
    """int of 64 bits"""
    DOUBLE = "double"
    """float"""
    LIST = "list"
    """tuple of str, separated by commas"""
    PASSWORD = "password"
    """str, without a default, that is never logged nor returned by any API"""


class FindingLevel(Enum):
    """What becomes of a start with what was found."""

    ERROR = "error"
    """The broker does not start."""
    WARNING = "warning"
    """It starts, and logs it as a warning."""
    NOTE = "note"
    """It starts: something is accepted and has no effect."""


@described
class SettingFinding(NamedTuple):
    """One thing to say of the file that a setting names: all of it in one line, with file, line, key and value."""

    level: FindingLevel
    line: str


@described
class Setting(NamedTuple):
    """One setting, of the broker or of a topic.

    A name that ends with a word in angle brackets, as `mqtt.topic.mapping.<filter>`, is that of a family: any text may
    stand in that place. A family has no default. A topic setting that has the name and the type of one of the broker's
    has the broker's value where the topic has none.
    """

    name: str
    type: Type
    default: Value
    help: str
    """What it does, in a sentence or two."""
    unit: str = ""
    """For people: `ms`, `bytes`."""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    check: Callable[[Value], str | None] | None = None
    """Why a value of the right type is not allowed, in one clause; None if it is."""
    dynamic: bool = False
    """Whether it can be changed while the broker runs. Topic settings always can."""
    check_member: Callable[[str, Value], str | None] | None = None
    """Of a family: as `check`, with what stands in the brackets' place before the value."""
    check_with_others: "Callable[[str, Settings], str | None] | None" = None
    """Why the value that was given does not go together with the plugin's other ones, in one clause; None if it does.
    It gets the setting's name, of a family the member's, and all of the plugin's settings. Called at the start, and by
    `leafcuttr config check`, where the plugin is on and each value is allowed alone. Not for dynamic settings and for
    those of topics."""
    check_file: "Callable[[str, Settings], Iterable[SettingFinding]] | None" = None
    """Of a setting that names a file: what there is to say of the file. It gets the arguments of `check_with_others`
    and is called as that is; it reads the file, and does nothing else that takes time."""


class Settings(Protocol):
    """The values of one plugin's settings, or of one topic's. A name that was not declared is a KeyError, an accessor
    of another type than the setting's a TypeError."""

    def bool(self, name: str) -> bool:
        """Of type BOOLEAN."""
        ...

    def int(self, name: str) -> int:
        """Of type INT or LONG, in the unit of the setting."""
        ...

    def float(self, name: str) -> float:
        """Of type DOUBLE."""
        ...

    def text(self, name: str) -> str:
        """Of type STRING or PASSWORD. Raises ValueError where it is not set and has no default."""
        ...

    def optional_text(self, name: str) -> str | None:
        """Of type STRING or PASSWORD; None where it is not set and has no default."""
        ...

    def list(self, name: str) -> tuple[str, ...]:
        """Of type LIST."""
        ...

    def family(self, name: str) -> Mapping[str, Value]:
        """The values of a family such as `mqtt.topic.mapping.<filter>`, by what stands in the brackets' place."""
        ...

    def on_change(self, call: Callable[[frozenset[str]], None]) -> Callable[[], None]:
        """Register a function that is called on the loop's thread with the names of changed settings. Returns a
        function that ends this, for a service to call when it ends; what a filter or validator has registered ends with
        its instance. Settings of a topic never change: filters and validators are made again instead.
        """
        ...


class Values:
    """The accessors of `Settings`, over values by name. The broker reads its own settings with them too.

    A subclass sets `_values`; what has no value of the right type there is refused, whatever was declared.
    """

    # The methods are named after the types that they return, and hide those names in here.
    _values: Mapping[builtins.str, Value]

    def bool(self, name: builtins.str) -> builtins.bool:
        value = self._values[name]
        if type(value) is not builtins.bool:
            raise TypeError(f"{name} is not of type boolean")
        return value

    def int(self, name: builtins.str) -> builtins.int:
        value = self._values[name]
        if type(value) is not builtins.int:
            raise TypeError(f"{name} is of type neither int nor long")
        return value

    def float(self, name: builtins.str) -> builtins.float:
        value = self._values[name]
        if type(value) is not builtins.float:
            raise TypeError(f"{name} is not of type double")
        return value

    def text(self, name: builtins.str) -> builtins.str:
        """Raises ValueError where it is not set and has no default."""
        value = self.optional_text(name)
        if value is None:
            raise ValueError(f"{name} is not set and has no default")
        return value

    def optional_text(self, name: builtins.str) -> builtins.str | None:
        value = self._values[name]
        if value is not None and type(value) is not builtins.str:
            raise TypeError(f"{name} is of type neither string nor password")
        return value

    def list(self, name: builtins.str) -> tuple[builtins.str, ...]:
        value = self._values[name]
        if type(value) is not tuple:
            raise TypeError(f"{name} is not of type list")
        return value


def listener_settings(prefix: str, port: int, host: str | None = None) -> Iterable[Setting]:
    """The settings of a listener, which `Broker.listen` reads: `<prefix>.host`, `<prefix>.port` and TLS.

    `port` and `host` are the defaults. A port of -1 is not opened: a listener that few need has it as its default. A
    host of None is that of the broker's first client listener.
    """
    where = "without one that of the first client listener, " if host is None else ""
    yield Setting(
        f"{prefix}.host",
        Type.STRING,
        host,
        f"The address to listen on; {where}empty for every address.",
    )
    yield Setting(
        f"{prefix}.port",
        Type.INT,
        port,
        "The port to listen on; 0 takes any free one, -1 opens none.",
        minimum=-1,
        maximum=65_535,
    )
    yield from tls_settings(prefix)


def serving_settings(
    prefix: str, port: int, host: str | None = None, *, idle_timeout_ms: int = 600_000
) -> Iterable[Setting]:
    """The settings of a listener that `Broker.serve` serves: those of `listener_settings`, a Unix socket, and the
    limits of connections. An `idle_timeout_ms` of 0 is for a protocol that has its own."""
    yield from listener_settings(prefix, port, host)
    yield Setting(
        f"{prefix}.unix.path",
        Type.STRING,
        None,
        "The path of a Unix socket to listen on too; with a port of -1 it is the only one. TLS does not apply to it.",
    )
    yield Setting(
        f"{prefix}.unix.mode",
        Type.STRING,
        "0660",
        "The permissions of the Unix socket's file, in octal: which users may connect.",
        check=_why_no_mode,
    )
    yield Setting(
        f"{prefix}.max.connections",
        Type.INT,
        -1,
        "How many connections may be open; one more is closed at once. -1: a share of the limit of open files. No "
        "value takes the descriptors that the broker keeps for its files, its clients and its admin port.",
        minimum=-1,
        maximum=1_000_000,
    )
    yield Setting(
        f"{prefix}.handshake.timeout.ms",
        Type.INT,
        10_000,
        "How long the handshake of TLS or of a WebSocket may take.",
        unit="ms",
        minimum=10,
        maximum=3_600_000,
    )
    yield Setting(
        f"{prefix}.idle.timeout.ms",
        Type.INT,
        idle_timeout_ms,
        "How long a connection may be open without a byte in either direction; 0: without limit.",
        unit="ms",
        minimum=0,
        maximum=604_800_000,
    )
    yield Setting(
        f"{prefix}.send.timeout.ms",
        Type.INT,
        30_000,
        "How long a client may take nothing of what is sent to it; then its connection is closed.",
        unit="ms",
        minimum=10,
        maximum=3_600_000,
    )


def websocket_settings(
    prefix: str, port: int, host: str | None = None, *, idle_timeout_ms: int = 600_000
) -> Iterator[Setting]:
    """The settings of a listener that `leafcuttr_sdk.websocket.serve` serves: those of `serving_settings`, and whose
    pages may connect from a browser."""
    yield from serving_settings(prefix, port, host, idle_timeout_ms=idle_timeout_ms)
    yield Setting(
        f"{prefix}.allowed.origins",
        Type.LIST,
        (),
        "Origins whose pages may connect from a browser, as https://example.com, beside those of the same host at any "
        "port; null for pages without an origin, as files are, * for every one. Clients that are no browsers send no "
        "origin and are not asked for one.",
        check=_why_no_origins,
    )


def _why_no_origins(value: Value) -> str | None:
    from leafcuttr_sdk._origins import why_no_origin

    names = value if isinstance(value, tuple) else ()
    return next((why for name in names if name and (why := why_no_origin(name))), None)


def _why_no_mode(value: Value) -> str | None:
    text = str(value)
    if 3 <= len(text) <= 4 and all(digit in "01234567" for digit in text) and int(text, 8) <= 0o777:
        return None
    return "allowed are permissions in octal, as 0660"


def tls_settings(prefix: str) -> Iterable[Setting]:
    """TLS under Kafka's own names after a prefix, the same for every listener."""
    yield Setting(
        f"{prefix}.ssl.keystore.location",
        Type.STRING,
        None,
        "A PEM file with the private key and its certificate chain; with it the listener speaks TLS only.",
    )
    yield Setting(
        f"{prefix}.ssl.keystore.type",
        Type.STRING,
        "PEM",
        "The format of that file.",
        choices=("PEM",),
    )
    yield Setting(
        f"{prefix}.ssl.key.password",
        Type.PASSWORD,
        None,
        "The password of the private key, if it is encrypted.",
    )
    yield Setting(
        f"{prefix}.ssl.truststore.location",
        Type.STRING,
        None,
        "A PEM file with the certificates that sign those of clients.",
    )
    yield Setting(
        f"{prefix}.ssl.client.auth",
        Type.STRING,
        "none",
        "Whether clients have to show a certificate.",
        choices=("required", "requested", "none"),
    )


_WAYS_TOLD: Final = {
    "basic": "basic (name and password)",
    "bearer": "bearer (a token)",
    "mtls": "mtls (a certificate, with {prefix}.ssl.client.auth)",
    "sasl": "sasl (the steps of a mechanism)",
    "none": "none (they need not)",
}


def authentication_settings(
    prefix: str, authenticators: Iterable[str] = (), *, ways: Iterable[str] = WAYS[:4]
) -> Iterator[Setting]:
    """`<prefix>.auth` and `<prefix>.authenticators`, whose default is `authenticators`. `ways` are those of `WAYS` that
    the service can offer: by default those of HTTP."""
    known = tuple(ways)
    told = ", ".join(text.format(prefix=prefix) for way, text in _WAYS_TOLD.items() if way in known)

    def check(value: Value) -> str | None:
        given = value if isinstance(value, tuple) else ()
        wrong = [way for way in given if way not in known]
        if wrong:
            return f"{wrong[0]!r} is none of {', '.join(known)}"
        return None if given else f"at least one of {', '.join(known)} has to be named"

    yield Setting(
        f"{prefix}.auth", Type.LIST, ("none",), f"How clients may authenticate: {told}.", check=check
    )
    yield Setting(
        f"{prefix}.authenticators",
        Type.LIST,
        tuple(authenticators),
        "The authenticators that check the credentials of clients, in their order; plugins bring them.",
    )
