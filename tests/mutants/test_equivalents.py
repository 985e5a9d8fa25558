"""The list of equivalent mutants speaks of code that is there. Whether they are equivalent, `nox -s mutants` says."""

from typing import Any

import pytest

from mutants.equivalents import Equivalent, read_equivalents, trouble_with
from mutants.targets import ROOT, TARGETS, nearest_tests, source_of


@pytest.mark.parametrize("entry", read_equivalents(), ids=lambda entry: entry.where[:60])
def test_an_equivalent_names_a_function_and_text_that_are_there(entry: Equivalent) -> None:
    assert trouble_with(entry) is None


def test_no_equivalent_is_listed_twice() -> None:
    keys = [entry.key for entry in read_equivalents()]
    assert sorted(keys) == sorted(set(keys))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"module": "log/nowhere"}, "no module"),
        ({"function": "Rescan.nothing"}, "no such function"),
        ({"old": "return base_offset != offset"}, "no such text"),
        ({"nth": 2}, "fewer than 2"),
        ({"reason": " "}, "no reason"),
    ],
)
def test_an_entry_that_does_not_hold_is_told(changed: dict[str, Any], said: str) -> None:
    entry = Equivalent(
        "log/recovery/rescan", "Rescan._follows", "return base_offset == offset or", "", "a reason"
    )
    assert trouble_with(entry) is None
    assert said in (trouble_with(entry._replace(**changed)) or "")


@pytest.mark.parametrize("module", TARGETS)
def test_a_target_and_its_tests_are_there(module: str) -> None:
    assert source_of(module).is_file()
    for path in nearest_tests(module):
        assert (ROOT / path).is_file(), path
