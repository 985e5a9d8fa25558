"""Steps that are counted."""

import pytest

from leafcuttr_registry.budget import STEPS, Budget
from leafcuttr_sdk.schemas import SchemaError


def test_as_many_steps_as_there_are() -> None:
    budget = Budget(3)
    budget.spend()
    budget.spend(2)
    assert budget.left == 0
    with pytest.raises(SchemaError, match=r"^too complex: ") as raised:
        budget.spend()
    assert "\n" not in str(raised.value)


def test_several_at_once() -> None:
    with pytest.raises(SchemaError, match="too complex"):
        Budget(3).spend(4)
    assert Budget().left == STEPS
