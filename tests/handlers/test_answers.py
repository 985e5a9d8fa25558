"""What several handlers share: messages of errors, bit sets of operations, questions that are repeated."""

import pytest

from leafcuttr.errors import BrokerError, InvalidRequest, UnknownTopicId, UnknownTopicOrPartition
from leafcuttr.handlers.answers import REPEATED, FewRepeated, words


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InvalidRequest("This one."), "This one."),
        (UnknownTopicOrPartition("Mine."), "Mine."),
        (UnknownTopicOrPartition(), "This server does not host this topic-partition."),
        (UnknownTopicId(), "This server does not host this topic ID."),
        (InvalidRequest(), None),
    ],
)
def test_the_message_of_an_error(error: BrokerError, expected: str | None) -> None:
    assert words(error) == expected


def test_a_question_that_is_repeated_is_answered_a_few_times() -> None:
    few = FewRepeated()
    assert [few.answers(question) for question in range(1000)] == [True] * 1000
    assert [few.answers(7) for _ in range(REPEATED)] == [True] * REPEATED
    assert not few.answers(7) and not few.answers(8)
    assert few.answers("new")
