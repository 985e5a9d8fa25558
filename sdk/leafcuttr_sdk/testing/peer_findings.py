"""What the checks of a peer, and of one that blocks, have in common: which part is under way, and what was wrong."""

import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from leafcuttr_sdk.records import Appended
from leafcuttr_sdk.testing.report import Notes, told

if TYPE_CHECKING:
    from leafcuttr_sdk.errors import BrokerError


class PeerFindings:
    """The base of what goes through the parts of such a check."""

    def __init__(self, notes: Notes, prefix: str) -> None:
        self.notes = notes
        self._prefix = prefix
        self._part = ""

    def wrong(self, problem: str) -> None:
        """A line for the part under way."""
        self.notes.add(self._part, problem)

    def same(self, what: str, found: object, wanted: object) -> None:
        """A line unless the two are equal."""
        if found != wanted:
            self.wrong(f"{what} is {found!r}, not {wanted!r}")

    @contextmanager
    def raises(self, what: str, *kinds: type[BaseException]) -> Generator[None]:
        """A line unless the block raises one of these."""
        names = " or ".join(kind.__name__ for kind in kinds)
        try:
            yield
        except kinds:
            return
        except Exception as error:
            self.wrong(f"{what} raised {told(error)}, not {names}")
            return
        self.wrong(f"{what} raised nothing, not {names}")

    def name(self, what: str) -> str:
        """A new one for a topic, a group or a transactional id."""
        return f"{self._prefix}-{what}-{secrets.token_hex(4)}"

    def all_appended(self, answers: "Sequence[Appended | BrokerError]") -> None:
        """A line for each that was refused."""
        for answer in answers:
            if not isinstance(answer, Appended):
                self.wrong(f"`append` answered {told(answer)}")
