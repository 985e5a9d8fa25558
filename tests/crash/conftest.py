"""Options of the crash suite: how many kills, and the seed that repeats a run.

A long run goes another way each time. The gate's slice goes the same way always: it says whether a change broke
something, and what chance finds is looked for in the long form.
"""

import random
from typing import Final

import pytest

_OF_THE_GATE: Final = 1


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, help="kills at random moments, beside one at every named point")
    parser.addoption("--crash-seed", type=int, help="repeat the run that printed this seed")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    given = request.config.getoption("--crash-seed")
    if given is None:
        long = request.config.getoption("--long")
        given = random.SystemRandom().randrange(1 << 32) if long else _OF_THE_GATE
    print(f"--crash-seed {given} repeats this run")
    return int(given)
