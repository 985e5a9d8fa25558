"""BROKER_LOGGER resources (KIP-412): the levels of this process's loggers, read and changed over the wire.

Our loggers are those below `leafcuttr`, and `root`. Levels have the names that Kafka's tools know; Python has no
TRACE and calls FATAL critical. A change lasts until the process ends, as in Kafka.
"""

import logging
from typing import Final

from leafcuttr.config.describe import Described
from leafcuttr.config.settings import Source
from leafcuttr.errors import InvalidConfig, InvalidRequest

ROOT: Final = "root"
_OURS: Final = "leafcuttr"
_LEVELS: Final = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": logging.DEBUG - 5,
    "WARN": logging.WARNING,
}


def describe_loggers() -> list[Described]:
    """Every logger with the level in force."""
    return [
        Described(name, _level_name(_logger(name)), Source.DYNAMIC_BROKER_LOGGER_CONFIG)
        for name in (ROOT, *_names())
    ]


def check_level(name: str, level: str) -> None:
    """Raise InvalidConfig unless there is such a logger and such a level."""
    _check_logger(name)
    if level not in _LEVELS:
        raise InvalidConfig(
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(_LEVELS)}"
        )


def check_unset(name: str) -> None:
    """Raise InvalidRequest or InvalidConfig if a logger cannot go back to its parent's level."""
    if name == ROOT:
        raise InvalidRequest("Removing the log level of the root logger is not allowed")
    _check_logger(name)


def set_level(name: str, level: str) -> None:
    _logger(name).setLevel(_LEVELS[level])


def unset_level(name: str) -> None:
    _logger(name).setLevel(logging.NOTSET)


def _check_logger(name: str) -> None:
    if name != ROOT and name not in _names():
        raise InvalidConfig(f"Logger {name} does not exist!")


def _names() -> list[str]:
    known = logging.root.manager.loggerDict
    return sorted(name for name in list(known) if name == _OURS or name.startswith(f"{_OURS}."))


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def _level_name(logger: logging.Logger) -> str:
    """The highest named level that the logger's own does not exceed; all let through is TRACE."""
    level = logger.getEffectiveLevel()
    below = [(value, name) for name, value in _LEVELS.items() if value <= level]
    return max(below)[1] if below else "TRACE"
