"""What became of a message that was to be stored in Kafka topics. One that is in all of them has no entry anywhere."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from leafcuttr_mqtt.packets.types import ReasonCode
from leafcuttr_sdk.errors import ErrorCode

MAX_TEXT: Final = 500
"""Characters of a reason that goes to a client."""


class Refusal(NamedTuple):
    """A message can never be stored in a Kafka topic."""

    kafka_topic: str
    code: ReasonCode
    """One that PUBACK and PUBREC may carry (3.4.2.1)."""
    text: str


@dataclass(slots=True)
class Failure:
    """A message is not in all of its Kafka topics. It may be refused by some of them and missing in others: it has to
    be stored in those (`Turn.again`) before its publisher is told that it was refused."""

    refused: Refusal | None = None
    """The first one that a Kafka topic gave."""
    missing: tuple[str, ...] = ()
    """Kafka topics that did not take it for now: nothing is wrong with the message."""
    reason: str = ""
    """Why not, of the last of `missing`. For the log: it may name files of the broker."""
    disk_full: bool = False
    """Whether the broker has no space on its disk for one of `missing`."""
    letter: Refusal | None = None
    """For which refusal it goes to the dead letters: they have not taken it, for good or for now."""


_REFUSED: Final[dict[int, ReasonCode]] = {
    ErrorCode.INVALID_RECORD: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    ErrorCode.INVALID_TIMESTAMP: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    ErrorCode.CORRUPT_MESSAGE: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    ErrorCode.MESSAGE_TOO_LARGE: ReasonCode.QUOTA_EXCEEDED,
    ErrorCode.RECORD_LIST_TOO_LARGE: ReasonCode.QUOTA_EXCEEDED,
    ErrorCode.POLICY_VIOLATION: ReasonCode.NOT_AUTHORIZED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ReasonCode.NOT_AUTHORIZED,
    ErrorCode.INVALID_TOPIC_EXCEPTION: ReasonCode.TOPIC_NAME_INVALID,
}
"""Errors that are for good. After any other one the message is tried again."""

CONCERNS_ONE: Final[set[int]] = {*_REFUSED, ErrorCode.UNKNOWN_SERVER_ERROR} - {
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
}
"""Errors of a batch that may be about one of its records only, also where they do not name it."""
MAX_SPLITS: Final = 64
"""How often a turn looks for the record at fault by halves, where the error may as well be that of all records."""


def refusal_of(kafka_topic: str, code: int, text: str) -> Refusal | None:
    """What an error code of Kafka says about a message, where it is for good."""
    reason = _REFUSED.get(code)
    return None if reason is None else Refusal(kafka_topic, reason, shortened(text))


def shortened(text: str) -> str:
    """The first line of a text, and not too much of it."""
    line = text.partition("\n")[0].replace("\0", "\N{REPLACEMENT CHARACTER}")
    return line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 3]}..."


class Outcomes:
    """What became of the messages of a turn, by their numbers."""

    def __init__(self) -> None:
        self.failures: Final[dict[int, Failure]] = {}
        self._letters: Final[dict[int, Refusal]] = {}
        """Those that go to the dead letters, and why."""

    def _begin_letter(self, index: int) -> None:
        """A message that was refused goes to the dead letters."""
        failure = self.failures[index]
        if failure.refused is None or failure.letter is not None:
            raise ValueError("a dead letter is of a message that was refused, and not as a dead letter")
        self._letters[index] = failure.refused
        failure.refused, failure.letter = None, failure.refused
        if not failure.missing:
            del self.failures[index]

    def _take_over(self, index: int, failure: Failure) -> None:
        """What an earlier turn says of a message."""
        if failure.letter is not None:
            self._letters[index] = failure.letter
        if failure.refused is not None:
            self._refuse(index, failure.refused)

    def _not_stored(
        self, index: int, kafka_topic: str, code: int, text: str, *, disk_full: bool = False
    ) -> None:
        refusal = refusal_of(kafka_topic, code, text)
        if refusal is not None:
            self._refuse(index, refusal)
        else:
            self._delay(index, kafka_topic, text, disk_full=disk_full)

    def _refuse(self, index: int, refusal: Refusal) -> None:
        failure = self._failure(index)
        if failure.refused is None:
            failure.refused = refusal

    def _delay(self, index: int, kafka_topic: str, why: str, *, disk_full: bool = False) -> None:
        failure = self._failure(index)
        failure.missing += (kafka_topic,)
        failure.disk_full |= disk_full
        failure.reason = shortened(f"Kafka topic {kafka_topic}: {why}")

    def _failure(self, index: int) -> Failure:
        found = self.failures.get(index)
        if found is None:
            found = self.failures[index] = Failure()
        found.letter = self._letters.get(index)
        return found
