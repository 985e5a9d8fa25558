"""Records that formats make: as many as they should be, the same for a seed, and one line for what is no record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from leafcuttr.cli.common.records import making
from leafcuttr.cli.common.records.formats import Formats
from leafcuttr.cli.common.records.making import USUAL_BYTES, USUAL_RECORDS, records_made
from leafcuttr.cli.common.records.own_formats import TextFormat
from leafcuttr_sdk import Record
from support.making_plugin import making_plugin


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with making_plugin(tmp_path / "plugins", monkeypatch):
        yield


def made(
    name: str, *settings: str, seed: int = 0, wanted: int = 10, distinct: int | None = None
) -> list[Record]:
    return records_made(name, settings, "t", seed, wanted, distinct)


def test_the_same_seed_makes_the_same_records() -> None:
    records = made("well", "size=20")
    assert records == made("well", "size=20")
    assert records != made("well", "size=20", seed=1)
    assert len(records) == 10 and len({record.key for record in records}) > 1
    # On every machine, by every version of Python.
    assert records[0].key == b"k5"
    assert records[0].headers == (("kind", b"made"), ("none", None))
    assert (records[0].value or b"").startswith(b"t 0 0.")


def test_how_many_are_made() -> None:
    assert len(made("well", wanted=1)) == 1
    assert len(made("well", wanted=10**6)) == USUAL_RECORDS
    assert len(made("well", wanted=10**6, distinct=5000)) == 5000
    assert len(made("well", wanted=3, distinct=5000)) == 3
    assert len(made("well", "end=7", wanted=10**6)) == 7
    large = made("well", "size=1000000", wanted=10**6)
    assert len(large) == USUAL_BYTES // 1_000_000 + 1
    assert len(made("well", "size=1000000", wanted=10**6, distinct=20)) == 20
    assert made("tombstones") == [Record(None, b"gone")]


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("json", (), "--format: json makes no records; those that do: avro, well, tombstones, refuses"),
        ("plain", (), "--format: plain makes no records; those that do: avro, well"),
        ("wel", (), "--format: no format 'wel': did you mean well?"),
        ("well", ("sizes=1",), "--format: no option 'sizes': there are end, size"),
        ("well", ("size",), "--format-option size: expected NAME=VALUE"),
        ("well", ("size=x",), "format well failed: ValueError: invalid literal for int()"),
        ("nothing", (), "--format: nothing has made no record"),
        ("null", (), "make_records: it made None, not a Record"),
        ("refuses", (), "--format: size=0: a reading has some"),
        ("breaks", (), "--format: plugin making: format breaks failed: ZeroDivisionError: no more"),
        ("exits", (), "format exits failed: SystemExit: 3"),
        ("no-iterator", (), "format no-iterator failed: TypeError: 'int' object is not iterable"),
        ("text-values", (), "make_records: the value of a record is a str, neither bytes nor None"),
        ("pairs", (), "make_records: it made a tuple, not a Record"),
        ("odd-key", (), "make_records: the key of a record is an int"),
        ("odd-headers", (), "make_records: a header of a record is ('a', 'b')"),
        ("odd-name", (), "make_records: a header of a record is ('\\udcff', b'')"),
        ("odd-time", (), "make_records: the timestamp of a record is -1"),
    ],
)
def test_what_cannot_be_sent_is_one_line(name: str, settings: tuple[str, ...], says: str) -> None:
    with pytest.raises(click.UsageError) as raised:
        made(name, *settings)
    assert says in raised.value.message
    assert len(raised.value.message.splitlines()) == 1


def test_without_a_plugin_that_does(monkeypatch: pytest.MonkeyPatch) -> None:
    from leafcuttr.cli.common.installed import installed

    monkeypatch.delenv("KAFKA_LC_PLUGINS_PATH")
    installed.cache_clear()
    with pytest.raises(click.UsageError, match="text makes no records; those that do: avro"):
        made("text")
    monkeypatch.setattr(making, "known_formats", lambda: Formats([TextFormat()]))
    with pytest.raises(click.UsageError, match="text makes no records; no format that is installed does"):
        made("text")
