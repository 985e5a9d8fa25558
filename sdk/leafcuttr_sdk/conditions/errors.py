"""What is wrong with a condition, and where in it."""

from typing import Final

_SHOWN: Final = 60
"""Characters of a condition before and behind the place; a longer one is cut."""


class ConditionError(ValueError):
    """A condition that cannot be parsed. Its text is one line: what was found or expected, the column, the
    condition."""

    def __init__(self, reason: str, column: int, text: str) -> None:
        self.reason: Final = reason
        """What was found, and what was expected."""
        self.column: Final = column
        """Where it is in the text, in characters from 1."""
        self.text: Final = text
        """The whole condition."""
        super().__init__(f"{_line(reason)}, at column {column} of: {_excerpt(text, column - 1)}")


def _excerpt(text: str, at: int) -> str:
    first, last = max(0, at - _SHOWN), min(len(text), at + _SHOWN)
    return f"{'...' if first else ''}{_line(text[first:last])}{'...' if last < len(text) else ''}"


def _line(text: str) -> str:
    """What would break the line, or change the terminal, as an escape."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
