"""The identity of a client: what ACLs and quotas decide by.

A Kafka client has the principal that its connection has been given, `User:ANONYMOUS` until there is authentication, and
came in through a listener. A plugin runs in this process and has no connection: it is the principal `Plugin:NAME` on
the listener IN_PROCESS, so that a rule about users never means a plugin and a rule about a plugin never means a user
of that name, nor does it share the quota of the anonymous clients. A listener in `listeners` that is called IN_PROCESS
changes nothing: the principal of a connection never has the type Plugin.
"""

import socket
from struct import Struct
from typing import Final, NamedTuple

from leafcuttr_sdk.principals import ANONYMOUS as ANONYMOUS
from leafcuttr_sdk.principals import Principal as Principal

UNKNOWN: Final = "unknown"
"""The software of a client that has not said it, as in Kafka."""
IN_PROCESS: Final = "IN_PROCESS"
_LOOPBACK: Final = "127.0.0.1"
_IPV6: Final = Struct(">8H")


class ClientIdentity(NamedTuple):
    """One client as of one request; it is replaced, never changed, so that what waits may keep it.

    `host` is an IP address. `client_id` is what the header of the request says, `software_name` and `software_version`
    what ApiVersions has said on the connection (KIP-511).
    """

    principal: Principal
    listener_name: str
    security_protocol: str
    host: str
    port: int
    client_id: str | None = None
    software_name: str = UNKNOWN
    software_version: str = UNKNOWN

    @property
    def client_host(self) -> str:
        """The address as Kafka prints it: behind a slash, an IPv6 address with all its groups."""
        address, percent, scope = self.host.partition("%")
        if ":" in address:
            groups = _IPV6.unpack(socket.inet_pton(socket.AF_INET6, address))
            address = ":".join(format(group, "x") for group in groups)
        return f"/{address}{percent}{scope}"

    @property
    def peer(self) -> str:
        """`host:port`, for the log."""
        return f"{self.host}:{self.port}"


def of_plugin(name: str) -> ClientIdentity:
    """The identity of a plugin when it produces, reads or joins a group. A consumer may have another client id."""
    client_id = f"leafcuttr-plugin-{name.replace('.', '-')}"
    return ClientIdentity(Principal("Plugin", name), IN_PROCESS, "PLAINTEXT", _LOOPBACK, 0, client_id)
