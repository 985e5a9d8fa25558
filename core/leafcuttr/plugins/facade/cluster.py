"""`leafcuttr_sdk.Cluster`: the broker's id, and where it listens."""

from collections.abc import Sequence

from leafcuttr.state.broker import Broker
from leafcuttr.version import __version__
from leafcuttr_sdk import Endpoint


class ClusterView:
    """The one broker that there is."""

    def __init__(self, core: Broker) -> None:
        self._core = core

    @property
    def cluster_id(self) -> str:
        return self._core.cluster_id

    @property
    def node_id(self) -> int:
        return self._core.node_id

    @property
    def version(self) -> str:
        return __version__

    @property
    def listeners(self) -> Sequence[Endpoint]:
        return [
            Endpoint(each.name, each.protocol, each.advertised_host, each.advertised_port)
            for each in self._core.listeners
        ]
