"""Who of a group's members gets the claim."""

import pytest

from leafcuttr.wire.claim_protocol import HOLDS, WAITS, assignments, says_held


def test_the_holder_keeps_it() -> None:
    assert assignments([("a", WAITS), ("b", HOLDS), ("c", WAITS)]) == {"a": WAITS, "b": HOLDS, "c": WAITS}


@pytest.mark.parametrize("order", [("b", "a"), ("a", "b")])
def test_of_members_that_wait_one_gets_it_whatever_their_order(order: tuple[str, str]) -> None:
    assert assignments([(member, WAITS) for member in order]) == {"a": HOLDS, "b": WAITS}


def test_two_that_say_they_hold_it_do_not_both_get_it() -> None:
    assert assignments([("b", HOLDS), ("a", HOLDS)]) == {"a": HOLDS, "b": WAITS}


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x00", b"\x00\x00\x02"])
def test_what_makes_no_sense_holds_nothing(data: bytes) -> None:
    assert not says_held(data)


def test_a_later_version_with_more_behind_it_is_read() -> None:
    assert says_held(memoryview(b"\x00\x01\x01more"))
