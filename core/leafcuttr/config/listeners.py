"""The addresses the broker binds and those it tells clients: `listeners`, `advertised.listeners` and the like.

The names and rules are Kafka's, with two differences: the default is `PLAINTEXT://localhost:9092`, reachable
from this machine only, and a listener that advertises nothing and binds every interface is advertised by the
machine's host name. Listeners of the KRaft controller are accepted and left out: there is no controller to
talk to. No socket is opened and no name server is called.
"""

import re
import socket
from typing import Final, NamedTuple

from leafcuttr.config.settings import Settings
from leafcuttr.errors import ConfigError

_ENDPOINT: Final = re.compile(
    r"(?P<name>[^:/]+)://(?:\[(?P<six>[^\]]*)\]|(?P<host>[^\[\]:]*)):(?P<port>-?[0-9]{1,9})\Z"
)
SETTINGS: Final = frozenset({"listeners", "listener.security.protocol.map"})
"""What may be changed while the broker runs."""
WILDCARDS: Final = frozenset({"", "0.0.0.0", "::", "0:0:0:0:0:0:0:0"})
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Listener(NamedTuple):
    """One address to bind and what to tell the clients that connect to it.

    `host` is "" for every interface; an IPv6 address has no brackets. A port of 0 means any free one: `bound`
    gives the listener as it is once the kernel has chosen. Of a Unix socket, which only plugins have, `host` is the
    path.
    """

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    protocol: str = "PLAINTEXT"

    def bound(self, port: int) -> "Listener":
        """This listener after it was bound to `port`; an advertised port of 0 becomes the same."""
        return self._replace(port=port, advertised_port=self.advertised_port or port)

    def __str__(self) -> str:
        return f"{self.name}://{address(self.host, self.port)}"

    @property
    def advertised(self) -> str:
        """`host:port` as a client would write it."""
        return address(self.advertised_host, self.advertised_port)


class _Endpoint(NamedTuple):
    name: str
    host: str
    port: int


def parse_listeners(settings: Settings) -> tuple[Listener, ...]:
    """The listeners to open, in the order given. Raises ConfigError with one line."""
    endpoints = _endpoints(settings, "listeners")
    advertised = {e.name: e for e in _endpoints(settings, "advertised.listeners")}
    controllers = {name.upper() for name in settings.list("controller.listener.names")}
    protocols = _protocols(settings)
    _check_advertised(settings, advertised, {e.name for e in endpoints}, controllers)
    _check_inter_broker(settings, {e.name for e in endpoints} - controllers)
    listeners = []
    for endpoint in endpoints:
        if endpoint.name in controllers:
            continue
        protocol = protocols.get(endpoint.name)
        if protocol is None:
            raise _refused(
                settings, "listeners", f"no protocol for {endpoint.name} in listener.security.protocol.map"
            )
        shown = advertised.get(endpoint.name, endpoint)
        host = host_name() if shown.host in WILDCARDS else shown.host
        listeners.append(Listener(endpoint.name, endpoint.host, endpoint.port, host, shown.port, protocol))
    if not listeners:
        raise _refused(settings, "listeners", "at least one has to be for clients, not for the controller")
    return tuple(listeners)


def advertised_by_host_name(settings: Settings) -> list[str]:
    """The names of listeners whose advertised host is only our guess."""
    told = {e.name for e in _endpoints(settings, "advertised.listeners")}
    controllers = {name.upper() for name in settings.list("controller.listener.names")}
    return [
        e.name
        for e in _endpoints(settings, "listeners")
        if e.host in WILDCARDS and e.name not in told and e.name not in controllers
    ]


def host_name() -> str:
    """What the machine calls itself."""
    return socket.gethostname() or "localhost"


def _endpoints(settings: Settings, key: str) -> list[_Endpoint]:
    found: list[_Endpoint] = []
    for text in _list(settings, key):
        match = _ENDPOINT.match(text)
        if match is None:
            raise _refused(settings, key, f"{text!r} is not NAME://host:port")
        host = match["six"] if match["six"] is not None else match["host"]
        endpoint = _Endpoint(match["name"].upper(), host, int(match["port"]))
        if not 0 <= endpoint.port <= 65535:
            raise _refused(settings, key, f"port {endpoint.port} is not from 0 to 65535")
        if any(other.name == endpoint.name for other in found):
            raise _refused(settings, key, f"{endpoint.name} comes twice; every listener needs its own name")
        if key == "listeners" and any(_collide(other, endpoint) for other in found):
            raise _refused(
                settings, key, f"port {endpoint.port} comes twice; every listener needs its own port"
            )
        found.append(endpoint)
    if key == "listeners" and not found:
        raise _refused(
            settings, key, "at least one listener is needed, for example PLAINTEXT://localhost:9092"
        )
    return found


def _collide(one: _Endpoint, other: _Endpoint) -> bool:
    """Kafka lets two listeners share a port if one has an IPv4 and the other an IPv6 address."""
    return one.port == other.port != 0 and {_is_ipv6(one.host), _is_ipv6(other.host)} != {True, False}


def _is_ipv6(host: str) -> bool | None:
    if ":" in host:
        return True
    return False if re.fullmatch(r"[0-9.]+", host) else None


def _protocols(settings: Settings) -> dict[str, str]:
    key = "listener.security.protocol.map"
    protocols: dict[str, str] = {}
    for pair in settings.text(key).split(","):
        if not pair.strip():
            continue
        name, _, protocol = pair.strip().rpartition(":")
        if not name or protocol.upper() not in _PROTOCOLS:
            raise _refused(
                settings, key, f"{pair.strip()!r} is not NAME:PROTOCOL with one of {', '.join(_PROTOCOLS)}"
            )
        if name.upper() in protocols:
            raise _refused(settings, key, f"{name.upper()} comes twice")
        protocols[name.upper()] = protocol.upper()
    return protocols


def _check_advertised(
    settings: Settings, advertised: dict[str, _Endpoint], names: set[str], controllers: set[str]
) -> None:
    key = "advertised.listeners"
    for endpoint in advertised.values():
        if endpoint.name in controllers:
            continue
        if endpoint.name not in names:
            raise _refused(settings, key, f"{endpoint.name} is not in listeners ({', '.join(sorted(names))})")
        if endpoint.host in WILDCARDS and endpoint.host:
            raise _refused(
                settings, key, f"nobody can connect to {endpoint.host}; a routable address is needed"
            )


def _check_inter_broker(settings: Settings, names: set[str]) -> None:
    key = "inter.broker.listener.name"
    name = settings.optional_text(key)
    if name is not None and name.upper() not in names:
        raise _refused(
            settings, key, f"allowed is one of the listeners, {', '.join(sorted(names)) or 'none given'}"
        )


def _list(settings: Settings, key: str) -> tuple[str, ...]:
    return () if settings.value(key) is None else settings.list(key)


def _refused(settings: Settings, key: str, why: str) -> ConfigError:
    given = settings.given(key)
    value = (
        given.text
        if given
        else ",".join(_list(settings, key))
        if key != "listener.security.protocol.map"
        else ""
    )
    return ConfigError(f"{key}={value} ({settings.where(key)}): {why}")


def address(host: str, port: int) -> str:
    """`host:port`, or the path of a Unix socket."""
    if host.startswith("/"):
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
