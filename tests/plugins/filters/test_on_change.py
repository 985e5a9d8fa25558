"""What a filter follows while the broker runs ends with its instance, also with one that could not be made."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from leafcuttr_sdk.testing import running_broker
from support import librdkafka

SOURCE = """
from leafcuttr_sdk import Plugin, PluginError, RecordFilterSpec, Setting, Type

PLUGIN = Plugin(name="follower", api_version=1, summary="Follows a setting.")
MADE, TOLD = [], []


def leafcuttr_register_settings():
    yield Setting("lc.plugin.follower.word", Type.STRING, "first", "A word.", dynamic=True)


def leafcuttr_register_topic_settings():
    yield Setting("lc.plugin.follower.fails", Type.BOOLEAN, False, "Whether it cannot be made.")


def leafcuttr_register_record_filters():
    yield RecordFilterSpec("follower", "follows a setting", Follower)


class Follower:
    def __init__(self, context):
        self.settings = context.settings
        self.settings.on_change(lambda names: TOLD.append((self, self.settings.text("lc.plugin.follower.word"))))
        MADE.append(self)
        if context.topic_settings.bool("lc.plugin.follower.fails"):
            raise PluginError("it cannot be made")

    def filter(self, record):
        return record
"""


@pytest.mark.parametrize("failed", [False, True])
def test_only_the_last_instance_is_told(failed: bool, tmp_path: Path) -> None:
    module = ModuleType("follower")
    exec(SOURCE, vars(module))
    with running_broker(tmp_path, plugins=[module]) as broker:
        address = broker.bootstrap_servers
        broker.create_topic("t", configs={"lc.filters": "follower"})
        librdkafka.alter(address, "topic", "t", {"lc.plugin.follower.fails": "true" if failed else "false"})
        librdkafka.alter(address, "topic", "t", {"lc.plugin.follower.fails": "false", "retention.ms": "7"})
        assert len(module.MADE) >= 2
        librdkafka.alter(address, "broker", "1", {"lc.plugin.follower.word": "second"})
        assert [(module.MADE[-1], "second")] == module.TOLD
