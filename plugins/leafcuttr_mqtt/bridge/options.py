"""The options of bridges, `mqtt.bridge.<name>.<option>`: how each is read, and each bridge as the code uses it.

What is declared of them at each start is `settings`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from leafcuttr_mqtt.bridge.names import BRIDGE, PREFIX, split
from leafcuttr_mqtt.bridge.topics import Routes, Rule, parse_rule
from leafcuttr_mqtt.packets.types import Version
from leafcuttr_mqtt.topics.names import why_no_name

if TYPE_CHECKING:
    from leafcuttr_sdk.settings import Settings, Value

PLAIN, TLS = "PLAINTEXT", "SSL"
_VERSIONS: Final = {"3.1": Version.V3_1, "3.1.1": Version.V3_1_1, "5.0": Version.V5}


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Bridge(NamedTuple):
    """One bridge."""

    name: str
    addresses: tuple[Address, ...]
    """Tried in this order; each attempt begins with the first."""
    rules: tuple[Rule, ...]
    version: Version
    client_id: str | None
    """At the other broker; None: made of the cluster's id and the name."""
    user_name: str | None
    password: bytes | None
    clean_session: bool
    """Nothing waits while the other broker is away, neither here nor there."""
    keep_alive_s: int
    max_inflight: int
    bridge_mark: bool
    """Say in CONNECT of 3.1 and 3.1.1 that it is a bridge, as mosquitto's `try_private`."""
    notifications: bool
    notifications_local_only: bool
    notification_topic: str | None
    backoff_s: float
    backoff_max_s: float
    tls: bool
    truststore: str | None
    keystore: str | None
    key_password: str | None
    check_host_name: bool

    @property
    def local_client_id(self) -> str:
        """Of its session here."""
        return f"bridge.{self.name}"

    def routes(self) -> Routes:
        return Routes(self.rules)


class _Option(NamedTuple):
    read: Callable[[str], Any]
    """Raises ValueError with what is wrong, in one clause."""
    default: Any
    help: str


def _is_host(text: str) -> bool:
    """Whether it can be a name or an IPv4 address, or is an IPv6 address without brackets. What names there are is the
    resolver's to say."""
    if ":" not in text:
        return bool(text) and not set(text) & set(" \t/@[]?#%")
    from ipaddress import IPv6Address

    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _addresses(text: str) -> tuple[tuple[str, int | None], ...]:
    found = []
    for each in text.split(","):
        each = each.strip()
        host, colon, port = each.rpartition(":")
        if not colon or (":" in host and not host.startswith("[")) or port.endswith("]"):
            host, port = each, ""
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        if not _is_host(host) or (
            port and not (port.isascii() and port.isdigit() and 0 < int(port) <= 65_535)
        ):
            raise ValueError(
                "allowed are addresses as broker-1:1883, 10.0.0.1 or [::1]:1883, separated by commas"
            )
        found.append((host, int(port) if port else None))
    return tuple(found)


def _rules(text: str) -> tuple[Rule, ...]:
    return tuple(parse_rule(each) for each in text.split(","))


def _boolean(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("allowed are true and false")
    return text.strip().lower() == "true"


def _one_of(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"allowed are {', '.join(each or 'nothing' for each in allowed)}")
        return text

    return read


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        stripped = text.strip()
        if not (stripped.isascii() and stripped.isdigit() and least <= int(stripped) <= most):
            raise ValueError(f"allowed are whole numbers from {least} to {most}")
        return int(stripped)

    return read


def _topic(text: str) -> str:
    wrong = why_no_name(text)
    if wrong is not None:
        raise ValueError(f"it is no MQTT topic: {wrong}")
    return text


OPTIONS: Final[Mapping[str, _Option]] = {
    "address": _Option(
        _addresses,
        None,
        "The other broker: host:port, or several of them, separated by commas, that are tried in their order. Without "
        "a port it is 1883, over TLS 8883.",
    ),
    "topics": _Option(
        _rules,
        None,
        "What goes over the bridge: rules as mosquitto's, separated by commas, each PATTERN [out|in|both [QOS "
        '[LOCAL-PREFIX [REMOTE-PREFIX]]]]. "" is an empty prefix, or pattern.',
    ),
    "protocol.version": _Option(
        _one_of(*_VERSIONS), "3.1.1", "3.1, 3.1.1 or 5.0; only the last one carries properties."
    ),
    "client.id": _Option(str, None, "The client id there. By default leafcuttr-<cluster id>-<name>."),
    "username": _Option(str, None, "The user name there."),
    "password": _Option(str, None, "The password there."),
    "clean.session": _Option(_boolean, False, "Let nothing wait while the other broker is away."),
    "keep.alive.ms": _Option(
        _number(5000, 65_535_000),
        60_000,
        "How long the connection may be silent until it is checked by a ping.",
    ),
    "max.inflight": _Option(
        _number(1, 65_535),
        20,
        "How many messages with QoS 1 and 2 may be on their way there without an acknowledgement; a broker of 5.0 may "
        "allow less. mosquitto allows 20.",
    ),
    "try.private": _Option(
        _boolean,
        True,
        "In 3.1 and 3.1.1: say that this is a bridge, so that a mosquitto or LeafCuttr there does not send its own "
        "messages back to it. A broker that refuses that is asked again without.",
    ),
    "notifications": _Option(
        _boolean, True, "Publish 1 and 0, retained, when the bridge is connected and when it is not."
    ),
    "notifications.local.only": _Option(_boolean, False, "Publish these at this broker only."),
    "notification.topic": _Option(
        _topic, None, "Their topic. By default $SYS/broker/connection/<client id>/state."
    ),
    "reconnect.backoff.ms": _Option(
        _number(10, 3_600_000), 1000, "The pause after the first attempt that failed; it doubles with each."
    ),
    "reconnect.backoff.max.ms": _Option(_number(10, 86_400_000), 30_000, "The longest such pause."),
    "security.protocol": _Option(_one_of(PLAIN, TLS), PLAIN, "PLAINTEXT or SSL."),
    "ssl.truststore.location": _Option(
        str,
        None,
        "A PEM file with the certificates that sign the other broker's; by default those of the system.",
    ),
    "ssl.keystore.location": _Option(
        str, None, "A PEM file with the private key and the certificate chain that the bridge shows."
    ),
    "ssl.key.password": _Option(str, None, "The password of that key, if it is encrypted."),
    "ssl.endpoint.identification.algorithm": _Option(
        _one_of("https", ""),
        "https",
        "https: the certificate has to be for the host of the address; empty: any is.",
    ),
}


def why_no_option(place: str, value: "Value") -> str | None:
    """Why a member of the family is refused, in one clause."""
    found = split(place)
    if found is None:
        return f"after a bridge's name there is one of {', '.join(OPTIONS)}"
    name, option = found
    wrong = why_no_name(name)
    if wrong is not None or "/" in name:
        return f"a bridge cannot be called {name!r}"
    try:
        OPTIONS[option].read(str(value))
    except ValueError as error:
        return str(error)
    return None


class OptionsConflict(ValueError):
    """Options of a bridge do not go together. `option` is the one to look at; the text goes on after its name."""

    def __init__(self, option: str, text: str) -> None:
        super().__init__(text)
        self.option = option


def why_no_bridge(name: str, values: "Settings") -> str | None:
    """Why a member of the family does not go together with the others of its bridge, in one clause. What is missing is
    said with the first of them."""
    found = split(name.removeprefix(PREFIX))
    assert found is not None, "check_member has refused it"
    bridge, option = found
    given = _given(values)[bridge]
    try:
        _bridge(bridge, given)
    except OptionsConflict as error:
        if error.option == option:
            return str(error)
        if error.option not in given and option == min(given):
            return f"{PREFIX}{bridge}.{error.option} {error}"
    return None


def read_bridges(values: "Settings") -> tuple[Bridge, ...]:
    """In the order of their names."""
    given = _given(values)
    return tuple(_bridge(name, given[name]) for name in sorted(given))


def _given(values: "Settings") -> dict[str, dict[str, Any]]:
    """The options of each bridge, by its name."""
    given: dict[str, dict[str, Any]] = {}
    for place, value in values.family(BRIDGE).items():
        found = split(place)
        assert found is not None, "check_member has refused it"
        name, option = found
        given.setdefault(name, {})[option] = OPTIONS[option].read(str(value))
    return given


def _bridge(name: str, given: Mapping[str, Any]) -> Bridge:
    """Raises OptionsConflict."""
    for option in ("address", "topics"):
        if option not in given:
            raise OptionsConflict(option, "is not set")
    at = {option: given.get(option, row.default) for option, row in OPTIONS.items()}
    tls = at["security.protocol"] == TLS
    if not tls and (extra := next((option for option in given if option.startswith("ssl.")), None)):
        raise OptionsConflict(extra, f"it needs {PREFIX}{name}.security.protocol=SSL")
    version = _VERSIONS[at["protocol.version"]]
    if at["password"] is not None and at["username"] is None and version != Version.V5:
        raise OptionsConflict("password", f"{PREFIX}{name}.username is not set; only 5.0 can do without")
    if at["clean.session"] is False and at["client.id"] == "":
        raise OptionsConflict("client.id", "it is empty: only a bridge with a clean session needs none")
    backoff_s = at["reconnect.backoff.ms"] / 1000
    return Bridge(
        name=name,
        addresses=tuple(Address(host, port or (8883 if tls else 1883)) for host, port in at["address"]),
        rules=at["topics"],
        version=version,
        client_id=at["client.id"],
        user_name=at["username"],
        password=None if at["password"] is None else at["password"].encode(),
        clean_session=at["clean.session"],
        keep_alive_s=at["keep.alive.ms"] // 1000,
        max_inflight=at["max.inflight"],
        bridge_mark=at["try.private"],
        notifications=at["notifications"],
        notifications_local_only=at["notifications.local.only"],
        notification_topic=at["notification.topic"],
        backoff_s=backoff_s,
        backoff_max_s=max(backoff_s, at["reconnect.backoff.max.ms"] / 1000),
        tls=tls,
        truststore=at["ssl.truststore.location"],
        keystore=at["ssl.keystore.location"],
        key_password=at["ssl.key.password"],
        check_host_name=at["ssl.endpoint.identification.algorithm"] == "https",
    )
