"""Who the broker is, and where it listens."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Endpoint(NamedTuple):
    """A client listener; host and port are those that clients are told."""

    name: str
    protocol: str
    host: str
    port: int


class Cluster(Protocol):
    """This broker and its listeners. Everything is read when it is requested."""

    @property
    def cluster_id(self) -> str: ...
    @property
    def node_id(self) -> int: ...
    @property
    def version(self) -> str:
        """LeafCuttr's."""
        ...

    @property
    def listeners(self) -> Sequence[Endpoint]:
        """Empty until they are bound."""
        ...
