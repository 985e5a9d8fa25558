"""A plugin whose formats make records, well and badly, for tests of `perf produce` and of what is before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leafcuttr.cli.common.installed import installed

SOURCE = r"""
import random as of_the_process
from leafcuttr_sdk import FormatError, Plugin, Record

PLUGIN = Plugin("making", 1, "for tests")


class Plain:
    summary, options, json_text = "text of a kind", {"size": "of each", "end": "how many"}, False

    def __init__(self, name, make=None):
        self.name = name
        if make is not None:
            self.make_records = make

    def open(self, options):
        return self

    def encode(self, text, place):
        return text.encode()

    def decode(self, data, place):
        return data.decode()

    def close(self):
        pass


def well(topic, options, random):
    size, end = int(options.get("size", 5)), int(options.get("end", 10**9))
    for number in range(end):
        key = b"k%d" % random.randrange(10)
        yield Record(f"{topic} {number} {random.random()}".encode()[:size].ljust(size, b"."), key,
                     (("kind", b"made"), ("none", None)), 1_700_000_000_000 + number)


def tombstones(topic, options, random):
    yield Record(None, b"gone")


def refuses(topic, options, random):
    raise FormatError("size=0: a reading has some")


def breaks(topic, options, random):
    yield Record(b"1")
    raise ZeroDivisionError("no more")


def exits(topic, options, random):
    raise SystemExit(3)


def of(thing):
    return lambda topic, options, random: iter([thing])


def leafcuttr_register_record_formats():
    yield Plain("well", well)
    yield Plain("plain")
    for make in (tombstones, refuses, breaks, exits):
        yield Plain(make.__name__, make)
    yield Plain("nothing", lambda topic, options, random: iter(()))
    yield Plain("no-iterator", lambda topic, options, random: 7)
    yield Plain("text", None)
    yield Plain("text-values", of(Record("text")))
    yield Plain("pairs", of((b"key", b"value")))
    yield Plain("odd-key", of(Record(b"", 7)))
    yield Plain("odd-headers", of(Record(b"", headers=(("a", "b"),))))
    yield Plain("odd-name", of(Record(b"", headers=(("\udcff", b""),))))
    yield Plain("odd-time", of(Record(b"", timestamp=-1)))
    yield Plain("null", of(None))
"""


@contextmanager
def making_plugin(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command line of this process has it meanwhile."""
    folder.mkdir()
    (folder / "making.py").write_text(SOURCE.replace("\\\\\\\\", "\\\\"), encoding="utf-8")
    monkeypatch.setenv("KAFKA_LC_PLUGINS_PATH", str(folder))
    installed.cache_clear()
    try:
        yield
    finally:
        installed.cache_clear()
