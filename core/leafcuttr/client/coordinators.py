"""What FindCoordinator is about."""

from enum import IntEnum
from typing import Final

from leafcuttr.errors import ErrorCode


class CoordinatorKind(IntEnum):
    """What FindCoordinator calls the type of a key."""

    GROUP = 0
    TRANSACTION = 1


COORDINATOR_NOT_YET: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""What a broker answers while the internal topic of groups or transactions is being made, read, or moved."""
