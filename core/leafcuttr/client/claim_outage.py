"""For how long the coordinator of a claim has not said who has it, and when that is worth a line. No I/O."""

from typing import Final

from leafcuttr.client.coordinators import COORDINATOR_NOT_YET
from leafcuttr.client.errors import reason
from leafcuttr.errors import BrokerError

LASTS_S: Final = 5.0
"""A coordinator that is being made, or moves to another broker, is back before that."""


class ClaimOutage:
    """`name` is that of the claim, which is a group's. Times are of any clock in seconds that only goes on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._since: float | None = None

    def over(self) -> None:
        """The coordinator has answered."""
        self._since = None

    def line(self, error: Exception, now: float) -> str | None:
        """What is to be said of this error of the coordinator, or of the way to it; None while it may soon be over."""
        if self._since is None:
            self._since = now
        if not isinstance(error, BrokerError):
            return str(error)
        if error.code in COORDINATOR_NOT_YET and now - self._since < LASTS_S:
            return None
        return f"the coordinator of the group {self._name}: {reason(error.code, str(error))}"
