"""BROKER_LOGGER resources: our loggers and their levels, by the names that Kafka's tools know."""

import logging
from collections.abc import Iterator

import pytest

from leafcuttr.errors import InvalidConfig, InvalidRequest
from leafcuttr.handlers import broker_loggers

NAME = "leafcuttr.test_broker_loggers"


@pytest.fixture
def logger(monkeypatch: pytest.MonkeyPatch) -> Iterator[logging.Logger]:
    """One of ours, whose parent has WARNING."""
    monkeypatch.setattr(logging.getLogger("leafcuttr"), "level", logging.WARNING)
    found = logging.getLogger(NAME)
    found.setLevel(logging.NOTSET)
    yield found
    found.setLevel(logging.NOTSET)


def level() -> str | None:
    return {each.name: each.value for each in broker_loggers.describe_loggers()}[NAME]


@pytest.mark.parametrize(
    ("name", "number"),
    [("TRACE", 5), ("DEBUG", 10), ("INFO", 20), ("WARN", 30), ("ERROR", 40), ("FATAL", 50)],
)
def test_a_level_is_set_and_unset(logger: logging.Logger, name: str, number: int) -> None:
    broker_loggers.check_level(NAME, name)
    broker_loggers.set_level(NAME, name)
    assert (logger.level, level()) == (number, name)
    broker_loggers.check_unset(NAME)
    broker_loggers.unset_level(NAME)
    assert level() == "WARN", "that of its parent"


@pytest.mark.parametrize(("number", "name"), [(1, "TRACE"), (15, "DEBUG"), (60, "FATAL")])
def test_a_level_between_two_names(logger: logging.Logger, number: int, name: str) -> None:
    logger.setLevel(number)
    assert level() == name


def test_only_our_loggers_and_the_root() -> None:
    logging.getLogger("leafcuttrish")
    names = [each.name for each in broker_loggers.describe_loggers()]
    assert names[0] == "root"
    assert all(name == "leafcuttr" or name.startswith("leafcuttr.") for name in names[1:])


def test_refusals(logger: logging.Logger) -> None:
    for name in ("leafcuttrish", "trio", "leafcuttr.missing", ""):
        with pytest.raises(InvalidConfig, match="does not exist"):
            broker_loggers.check_level(name, "INFO")
        with pytest.raises(InvalidConfig, match="does not exist"):
            broker_loggers.check_unset(name)
    with pytest.raises(InvalidConfig, match="not a supported log level"):
        broker_loggers.check_level(NAME, "info")
    with pytest.raises(InvalidRequest, match="root logger"):
        broker_loggers.check_unset("root")
    broker_loggers.check_level("root", "INFO")
