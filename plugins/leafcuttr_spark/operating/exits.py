"""The exit statuses of `leafcuttr spark run`."""

from enum import IntEnum
from typing import Final


class Exit(IntEnum):
    """How a run has ended."""

    DONE = 0
    """There was nothing more to do, or it was told to stop and has finished its batch."""
    FAILED = 1
    """A batch failed, or a cluster was away for too long: the next run may do better."""
    WRONG = 2
    """The call or the pipeline's file is wrong, or a package or Java is missing."""
    REFUSED = 3
    """A person has to decide: the checkpoint is of another pipeline, or there are more dead letters than allowed."""


FINAL: Final = (Exit.WRONG, Exit.REFUSED)
"""Those after which the next run would end in the same way."""
