"""How much work one schema may cost: steps are counted, and no clock is read, so that the same schema gets the same
answer on every machine."""

from typing import Final

from leafcuttr_sdk.schemas import SchemaError

STEPS: Final = 500_000
"""What one call of a format may spend unless it says otherwise: about half a second."""


class Budget:
    """The steps that are left to one call of a format. What a step is the code decides that spends it: about a
    microsecond's work."""

    __slots__ = ("left", "steps")

    def __init__(self, steps: int = STEPS) -> None:
        self.steps = steps
        self.left = steps

    def spend(self, n: int = 1) -> None:
        """Raises SchemaError once more has been spent than there was."""
        self.left -= n
        if self.left < 0:
            raise SchemaError(f"too complex: it takes more than {self.steps} steps to judge it")
