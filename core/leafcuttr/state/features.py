"""Feature levels (KIP-584): which there are, and which level is finalized, that is, in use."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from leafcuttr.state.metadata import MetadataStore

TRANSACTION_VERSION: Final = "transaction.version"


class Range(NamedTuple):
    """The levels that this broker supports, and the one that a new data directory begins with."""

    lowest: int
    highest: int
    default: int


# 1: records of __transaction_state are flexible. 2: every transaction has an epoch of its own (KIP-890).
FEATURES: Final[Mapping[str, Range]] = {TRANSACTION_VERSION: Range(0, 2, 2)}


class Features:
    """The finalized levels, in memory and in the metadata."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        changed = metadata.features()
        self._levels = {name: changed.get(name, known.default) for name, known in FEATURES.items()}

    @property
    def levels(self) -> Mapping[str, int]:
        """The finalized level of each feature; 0 is as good as not finalized."""
        return self._levels

    @property
    def transaction_version(self) -> int:
        return self._levels[TRANSACTION_VERSION]

    def store(self, levels: Mapping[str, int]) -> None:
        """Make new levels durable (callable in a worker). Raises StorageError. `publish` them then."""
        self._metadata.set_features(levels)

    def publish(self, levels: Mapping[str, int]) -> None:
        self._levels.update(levels)
