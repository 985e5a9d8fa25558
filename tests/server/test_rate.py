"""`max.connection.creation.rate`: permits for accepting, which fill up with time."""

import pytest

from leafcuttr.config.setting import INT_MAX
from leafcuttr.server.rate import CreationRate


class Changing:
    """A limit and a time that the test sets."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.now_s = 100.0
        self.rate = CreationRate(lambda: self.limit, lambda: self.now_s)

    def accepted(self, at_most: int = 1000) -> int:
        """How many may be accepted now."""
        count = 0
        while count < at_most and not self.rate.wait_s():
            self.rate.took()
            count += 1
        return count


def test_no_limit() -> None:
    assert Changing(INT_MAX).accepted() == 1000


def test_as_many_in_a_second_as_the_limit_says() -> None:
    found = Changing(10)
    assert found.accepted() == 10
    assert found.rate.wait_s() == pytest.approx(0.1)
    found.now_s += 0.25
    assert found.accepted() == 2
    assert found.rate.wait_s() == pytest.approx(0.05)
    found.now_s += 3600
    assert found.accepted() == 10, "not more than those of one second are kept"


def test_a_limit_that_changes() -> None:
    found = Changing(INT_MAX)
    found.accepted()
    found.limit = 5
    assert found.accepted() == 5
    found.limit = 0
    found.now_s += 3600
    assert found.rate.wait_s() == 1.0, "it is read again after a second"
    found.limit = 2
    found.now_s += 1
    assert found.accepted() == 2
    found.limit = INT_MAX
    assert found.accepted() == 1000
