"""Which key of a step's state somebody means, who writes JSON or plain text."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from leafcuttr_spark.state.keys import is_value


@pytest.mark.parametrize(
    ("found", "text", "is_it"),
    [
        ("a", "a", True),
        ("9", "9", True),
        ("9", '"9"', True),
        ("null", "null", True),
        (9, "9", True),
        (9, '"9"', False),
        (9.0, "9", True),
        (None, "null", True),
        (None, "", False),
        (True, "true", True),
        (1, "true", False),
        (True, "1", False),
        (date(2026, 11, 28), "2026-11-28", True),
        (date(2026, 11, 28), '"2026-11-28"', True),
        (Decimal("1.50"), "1.5", True),
        (Decimal("1.10"), "1.1", True),
        (0.1, "0.10", True),
        (None, "None", False),
        (True, "True", False),
        (float("nan"), "NaN", True),
        ("a", "b", False),
        ({"start": 1}, '{"start": 1}', True),
        ({"start": date(2026, 11, 28)}, '{"start":"2026-11-28"}', True),
        ({"start": date(2026, 11, 28)}, '{"start":"2026-11-29"}', False),
    ],
)
def test_a_value_of_a_key_is_given_as_json_or_as_text(found: Any, text: str, is_it: bool) -> None:
    assert is_value(found, text) is is_it
