"""Options of the crash suite: how many kills, and the seed that repeats a run."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, help="kills at random moments, beside one at every named point")
    parser.addoption("--crash-seed", type=int, help="repeat the run that printed this seed")
