"""A log manager on a temporary directory, and ways to leave it: cleanly, or as SIGKILL does."""

from __future__ import annotations

from pathlib import Path

from leafcuttr.config.settings import Settings
from leafcuttr.log.manager import LogManager, LogSpec
from leafcuttr.runtime.runtime import Runtime
from support.logs import CalmDisk, HandClock, config

TOPIC_ID = bytes(range(16))


def spec(partition: int = 0, *, topic: str = "t", topic_id: bytes = TOPIC_ID, **overrides: object) -> LogSpec:
    """A partition of a topic with Kafka's defaults but for `overrides`."""
    return LogSpec(topic, partition, topic_id, config(**overrides))


def opened(directory: Path, *specs: LogSpec, clock: HandClock | None = None, **settings: str) -> LogManager:
    """A manager with these logs loaded."""
    given = Settings({name.replace("_", "."): value for name, value in settings.items()})
    manager = LogManager.open(
        directory, runtime=Runtime.new(clock or HandClock()), settings=given, node_id=1, pressure=CalmDisk()
    )
    manager.load(specs)
    return manager


def abandon(manager: LogManager) -> None:
    """Leave the directory as a process that is killed does: nothing more is written."""
    manager.release()
