"""The broker's id, and where it listens."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from leafcuttr_sdk._described import described


@described
class Endpoint(NamedTuple):
    """A client listener; host and port are those that clients are told."""

    name: str
    protocol: str
    host: str
    port: int


class Cluster(Protocol):
    """This broker and its listeners. Everything is read when it is requested."""

    @property
    def cluster_id(self) -> str:
        """As clients see it in Metadata; it is made at the first start, and stays."""
        ...

    @property
    def node_id(self) -> int:
        """The broker's id, `node.id`."""
        ...

    @property
    def version(self) -> str:
        """LeafCuttr's."""
        ...

    @property
    def listeners(self) -> Sequence[Endpoint]:
        """Empty until they are bound."""
        ...
