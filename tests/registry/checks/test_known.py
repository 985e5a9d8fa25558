"""Which pairs of schemas were found compatible."""

from __future__ import annotations

import pytest

from leafcuttr_registry.checks import known
from leafcuttr_registry.checks.known import KnownCompatible
from leafcuttr_registry.checks.levels import directions

BACKWARD, FORWARD = directions("BACKWARD"), directions("FORWARD_TRANSITIVE")


def test_a_pair_is_known_of_one_type_and_direction_and_policy_alone() -> None:
    pairs = KnownCompatible()
    pairs.of("AVRO", b"new", BACKWARD, lenient=False).add([b"old"])
    assert b"old" in pairs.of("AVRO", b"new", BACKWARD, lenient=False)
    for other, old in (
        (pairs.of("JSON", b"new", BACKWARD, lenient=False), b"old"),
        (pairs.of("AVRO", b"old", BACKWARD, lenient=False), b"new"),
        (pairs.of("AVRO", b"new", FORWARD, lenient=False), b"old"),
        (pairs.of("AVRO", b"new", BACKWARD, lenient=True), b"old"),
        (pairs.of("AVRO", b"new", BACKWARD, lenient=False), b"older"),
    ):
        assert old not in other


def test_what_was_not_asked_about_for_long_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "_MOST", 2)
    pairs = KnownCompatible()
    of_new = pairs.of("AVRO", b"new", BACKWARD, lenient=False)
    of_new.add([b"1", b"2"])
    assert b"1" in of_new
    of_new.add([b"3"])
    assert b"2" not in of_new and b"1" in of_new and b"3" in of_new and len(pairs) == 2
    pairs.clear()
    assert b"1" not in of_new
