"""The clusters of a file, as peers. One whose address is this broker is taken in process."""

import socket
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.cluster import Endpoint
    from leafcuttr_sdk.peers import Peer

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})
_PORT: Final = "9092"
BOUND_S: Final = 5.0
"""How long listeners are waited for; a broker may have none."""


async def listeners_bound(broker: "Broker") -> None:
    """Services begin before listeners do: without their ports it is not known which address is this broker."""
    import trio

    with trio.move_on_after(BOUND_S):
        while not broker.cluster.listeners:  # noqa: ASYNC110 - there is no event for it
            await trio.sleep(0.02)


def open_peer(broker: "Broker", properties: Mapping[str, str]) -> "AbstractAsyncContextManager[Peer]":
    """The cluster with these settings of a client: this broker in process, or another one. Raises PluginError for
    settings that are not right."""
    if is_here(properties.get("bootstrap.servers", ""), broker.cluster.listeners):
        return broker.peer()
    return broker.peer(properties)


def is_here(servers: str, listeners: "Iterable[Endpoint]") -> bool:
    """Whether one of the addresses is that of a listener: as clients are told it, or by the names of this machine."""
    known = {(each.host.lower(), each.port) for each in listeners}
    ports = {port for _, port in known}
    own = _LOOPBACK | {socket.gethostname().lower()}
    for server in servers.split(","):
        host, _, port = server.strip().rpartition("://")[2].rpartition(":")
        if not host:
            host, port = port, _PORT
        host = host.strip("[]").lower()
        if (
            port.isascii()
            and port.isdigit()
            and ((host, int(port)) in known or (host in own and int(port) in ports))
        ):
            return True
    return False


async def is_this_broker(broker: "Broker", peer: "Peer") -> bool:
    """By the id of the cluster, whatever the addresses say. Raises BrokerError while it is away."""
    return not peer.in_process and await peer.cluster_id() == broker.cluster.cluster_id
