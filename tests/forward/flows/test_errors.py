"""Which of several errors counts."""

from __future__ import annotations

import pytest

from leafcuttr_forward.flows.errors import FlowStopped, SourceDiffers, line_of, one_error
from leafcuttr_sdk.errors import RequestTimedOut


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ([RequestTimedOut("a"), FlowStopped("b")], FlowStopped),
        ([RequestTimedOut("a"), SourceDiffers("b")], SourceDiffers),
        ([RequestTimedOut("a")], RequestTimedOut),
        ([FlowStopped("a"), KeyError("b")], KeyError),
    ],
)
def test_one_of_a_group_is_raised(errors: list[Exception], kind: type[Exception]) -> None:
    with pytest.raises(kind), one_error():
        raise ExceptionGroup("", [ExceptionGroup("", errors)])


def test_what_is_no_group_passes() -> None:
    with pytest.raises(KeyError), one_error():
        raise KeyError("a")


def test_what_ends_the_program_is_not_hidden_by_an_error_beside_it() -> None:
    with pytest.raises(BaseExceptionGroup) as raised, one_error():
        raise BaseExceptionGroup("", [KeyboardInterrupt(), RequestTimedOut("a")])
    (left,) = raised.value.exceptions
    assert isinstance(left, KeyboardInterrupt)


def test_lines() -> None:
    assert line_of(KeyError()) == "KeyError"
    assert line_of(ValueError("a\n b")) == "a b"
