"""Settings of plugins: what they are declared with, and how their values are read. Where values come from is the
broker's business: the file, `KAFKA_*` variables, `-o`, and for dynamic ones the admin API."""

import builtins
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


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


class Settings(Protocol):
    """The values of one plugin's settings, or of one topic's. A name that was not declared is a KeyError, an accessor
    of another type than the setting's a TypeError."""

    def bool(self, name: str) -> bool: ...
    def int(self, name: str) -> int: ...
    def float(self, name: str) -> float: ...
    def text(self, name: str) -> str:
        """Raises ValueError where it is not set and has no default."""
        ...

    def optional_text(self, name: str) -> str | None: ...
    def list(self, name: str) -> tuple[str, ...]: ...

    def family(self, name: str) -> Mapping[str, Value]:
        """The values of a family such as `mqtt.topic.mapping.<filter>`, by what stands in the brackets' place."""
        ...

    def on_change(self, call: Callable[[frozenset[str]], None]) -> Callable[[], None]:
        """Have it called, on the loop's thread, with the names of those whose value has changed; returns what ends
        that, for a service to call when it ends. Those of a topic never change: what works for a topic is made again.
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


def listener_settings(prefix: str, port: int) -> Iterable[Setting]:
    """The settings of a listener, which `Broker.listen` reads: `<prefix>.host`, `<prefix>.port` and TLS."""
    yield Setting(
        f"{prefix}.host",
        Type.STRING,
        None,
        "The address to listen on; without one that of the first client listener, empty for every address.",
    )
    yield Setting(
        f"{prefix}.port",
        Type.INT,
        port,
        "The port to listen on; 0 takes any free one.",
        minimum=0,
        maximum=65_535,
    )
    yield from tls_settings(prefix)


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
