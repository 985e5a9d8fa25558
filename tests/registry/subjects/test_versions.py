"""What stands for a version in a path."""

from __future__ import annotations

import pytest

from leafcuttr_registry.subjects.refusals import Refusal
from leafcuttr_registry.subjects.versions import LATEST, read_version


@pytest.mark.parametrize(
    ("text", "version"),
    [("1", 1), ("latest", LATEST), ("LATEST", LATEST), ("-1", LATEST), (" 7 ", 7), ("2147483647", 2**31 - 1)],
)
def test_versions(text: str, version: int) -> None:
    assert read_version(text) == version


@pytest.mark.parametrize("text", ["0", "-2", "x", "", "1.0", "2147483648", "9" * 100, "٣", "1_0"])
def test_that_are_none(text: str) -> None:
    with pytest.raises(Refusal, match="not a valid version id") as refused:
        read_version(text)
    assert refused.value.code == 42202
