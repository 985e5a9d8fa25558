"""A plugin with filters and validators in a folder, as somebody who does not package writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

SOURCE = """
import json

from leafcuttr_sdk import (
    DROP, DeadLetter, Plugin, PluginError, ProduceValidatorSpec, Record, RecordFilterSpec, Setting, Type
)

PLUGIN = Plugin(name="sieve", api_version=1, summary="Filters of a test.")


def leafcuttr_register_settings():
    yield Setting("lc.plugin.sieve.most", Type.INT, 3, "How long a value may be.", unit="bytes", dynamic=True)


def leafcuttr_register_topic_settings():
    yield Setting("lc.plugin.sieve.word", Type.STRING, "secret", "What is masked.")


def leafcuttr_register_record_filters():
    yield RecordFilterSpec("mask", "masks a word", Mask)
    yield RecordFilterSpec("sort", "keeps, drops, changes, sends elsewhere", Sort)
    yield RecordFilterSpec("broken", "cannot be made", Broken)
    yield RecordFilterSpec("dumb", "is no filter", lambda context: object())


def leafcuttr_register_produce_validators():
    yield ProduceValidatorSpec("short", "refuses long values", Short)


class Mask:
    def __init__(self, context):
        self.word = context.topic_settings.text("lc.plugin.sieve.word").encode()

    def filter(self, record):
        if record.value is None or self.word not in record.value:
            return record
        return record._replace(value=record.value.replace(self.word, b"*" * len(self.word)))


class Sort:
    def __init__(self, context):
        pass

    def filter(self, record):
        what = record.value[:1]
        if what == b"d":
            return DROP
        if what == b"l":
            return DeadLetter("it begins with an l")
        if what == b"c":
            return record._replace(value=b"C" + record.value[1:])
        return record


class Broken:
    def __init__(self, context):
        raise PluginError("no table of words at /no/where")


class Short:
    def __init__(self, context):
        self.settings = context.settings
        self.most = self.settings.int("lc.plugin.sieve.most")
        self.settings.on_change(self.changed)

    def changed(self, names):
        self.most = self.settings.int("lc.plugin.sieve.most")

    def validate(self, record):
        if len(record.value or b"") > self.most:
            return f"the value is longer than {self.most} bytes"
"""


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """The folder."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "sieve.py").write_text(SOURCE)
    return folder
