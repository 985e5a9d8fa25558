"""The validators that look at schema ids alone: the first bytes of keys or values, or one header. No record is taken
apart for them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from leafcuttr_registry.validation.claims import Claims, last_header
from leafcuttr_registry.validation.peeks import PEEKED_BYTES, peek_of
from leafcuttr_registry.validation.settings import (
    Check,
    PartName,
    PartOptions,
    Strategy,
    goes_to_dead_letters,
    options_of,
)
from leafcuttr_sdk.filters import NotReady
from leafcuttr_sdk.peek import PeekedBatch, distinct
from leafcuttr_sdk.schema_framing import ID_SIZE
from leafcuttr_sdk.schemas import DataError

if TYPE_CHECKING:
    from leafcuttr_sdk.filters import TopicContext


def _make(context: "TopicContext", part: PartName) -> "SchemaIds | None":
    options = options_of(context.topic_settings, part)
    if options.check is not Check.ID or goes_to_dead_letters(context.topic_settings):
        return None
    return SchemaIds(context, options)


def make_for_keys(context: "TopicContext") -> "SchemaIds | None":
    return _make(context, "key")


def make_for_values(context: "TopicContext") -> "SchemaIds | None":
    return _make(context, "value")


_Verdicts: TypeAlias = dict[tuple[bytes, bytes | None], str | NotReady | None]


class SchemaIds:
    """Of the keys, or the values, of a topic. A null passes: it is a tombstone, or a record without a key."""

    def __init__(self, context: "TopicContext", options: PartOptions) -> None:
        self._claims = Claims(context, options)
        self._is_key: Final = options.part == "key"
        by_message = options.strategy is not Strategy.TOPIC
        self.peek: Final = peek_of(options.part, PEEKED_BYTES if by_message else ID_SIZE)

    def validate_batch(self, batch: PeekedBatch) -> Mapping[int, str | NotReady]:
        parts = batch.keys if self._is_key else batch.values
        headers = batch.headers[self._claims.header]
        # Mostly a batch has one claim, before the data of all records: each is judged once.
        if not any(distinct(headers)):
            heads = {None if part is None else part[:ID_SIZE] for part in distinct(parts)}
            verdicts: _Verdicts = {
                (head, None): self._of_claim(head, None) for head in heads if head is not None
            }
            if not any(verdicts.values()):
                return {}
            claimed = [_claimed(*each) for each in zip(parts, headers, strict=True)]
        else:
            claimed = [_claimed(*each) for each in zip(parts, headers, strict=True)]
            verdicts = {each: self._of_claim(*each) for each in set(claimed) if each is not None}
            if not any(verdicts.values()):
                return {}
        refused: dict[int, str | NotReady] = {}
        for index, each in enumerate(claimed):
            verdict = None if each is None else verdicts[each]
            if verdict is PER_RECORD:
                verdict = self._of_record(parts[index], headers[index])
            if verdict is not None:
                refused[index] = verdict
        return refused

    def _of_claim(self, head: bytes, header: bytes | None) -> str | NotReady | None:
        try:
            claim = self._claims.read(head, header)
        except DataError as error:
            return str(error)
        if self._claims.surely_may(claim):
            return None
        if self._claims.depends_on_message(claim):
            return PER_RECORD
        return self._claims.judge(claim, head)

    def _of_record(self, data: bytes | None, headers: Sequence[bytes | None]) -> str | NotReady | None:
        assert data is not None
        return self._claims.judge(self._claims.read(data, last_header(headers)), data)


PER_RECORD: Final = "its message decides"
"""In the place of a verdict: the claim alone does not tell."""


def _claimed(data: bytes | None, headers: Sequence[bytes | None]) -> tuple[bytes, bytes | None] | None:
    """What is the same for records of one schema."""
    if data is None:
        return None
    return (b"", last_header(headers)) if headers else (data[:ID_SIZE], None)
