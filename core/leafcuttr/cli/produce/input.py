"""The records of an input: lines, JSON lines or whole files, completed by what the options say of every record."""

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from leafcuttr.cli.common.options.positions import parse_time
from leafcuttr.cli.common.records.input_lines import TooLongError, lines, unescaped, whole
from leafcuttr.cli.common.records.json_lines import Codecs, HeaderList, OutRecord, read_line
from leafcuttr_sdk.formats import FormatError

if TYPE_CHECKING:
    from leafcuttr.cli.common.records.sending import Sender


class InputError(Exception):
    """What is wrong in the input, and where."""


class Shape(NamedTuple):
    """What the options say of every record."""

    kind: str
    separator: bytes | None
    null: bytes | None
    ignored: frozenset[str]
    every: OutRecord


def shape_of(given: dict[str, Any]) -> Shape:
    """The shape that the options of the command give. Raises click.UsageError for those that exclude each other."""
    kind = "json" if given["as_json"] else "whole" if given["whole"] else "lines"
    if given["as_json"] and given["whole"]:
        raise click.UsageError("--json and --whole: one of them")
    if given["key_separator"] is not None and kind != "lines":
        raise click.UsageError("--key-separator is for lines")
    if given["ignore"] and kind != "json":
        raise click.UsageError("--ignore is for --json")
    if given["transaction_size"] is not None and given["transactional_id"] is None:
        raise click.UsageError("--transaction-size needs --transactional-id")
    headers: HeaderList = []
    for header in given["headers"]:
        name, equals, text = header.partition("=")
        if not equals:
            raise click.UsageError(f"--header {header}: expected KEY=VALUE")
        headers.append((name, text.encode("utf-8", "surrogateescape")))
    timestamp = None
    if given["timestamp"] is not None:
        try:
            timestamp = parse_time(given["timestamp"].removeprefix("@"), time.time_ns() // 1_000_000)
        except ValueError as error:
            raise click.UsageError(f"--timestamp: {error}") from None
    if given["key_separator"] == "":
        raise click.UsageError("--key-separator: expected at least one character")
    separator = given["key_separator"]
    null, key = given["null"], given["every_key"]
    return Shape(
        kind,
        None if separator is None else unescaped(separator),
        None if null is None else null.encode("utf-8", "surrogateescape"),
        frozenset(given["ignore"]),
        OutRecord(
            None,
            None if key is None else key.encode("utf-8", "surrogateescape"),
            headers,
            given["partition"],
            timestamp,
        ),
    )


def records(
    files: tuple[str, ...], shape: Shape, codecs: Codecs, limit: int, sender: "Sender", took: Any
) -> Iterator[tuple[str, int, OutRecord]]:
    """Each record with its source and number. Raises InputError, OSError, and what the sender's `idle` raises."""
    for file in files or ("-",):
        prefix = "" if file == "-" else f"{file} "
        with _opened_file(file) as source:
            if shape.kind == "whole":
                try:
                    yield f"{prefix}record", 1, _line(whole(source, limit, sender.idle), shape, codecs)
                except (FormatError, ValueError) as error:
                    raise InputError(f"{prefix.strip() or 'standard input'}: {error}") from None
                continue
            number = 0
            try:
                for number, line in enumerate(lines(source, limit, sender.idle, took), 1):
                    if shape.kind == "json" and not line.strip():
                        continue
                    make = _json if shape.kind == "json" else _line
                    yield f"{prefix}line", number, make(line, shape, codecs)
            except TooLongError as error:
                raise InputError(f"{prefix}line {number + 1}: {error}") from None
            except ValueError as error:
                raise InputError(f"{prefix}line {number}: {error}") from None


@contextlib.contextmanager
def _opened_file(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as source:
        yield source


def _line(line: bytes, shape: Shape, codecs: Codecs) -> OutRecord:
    key, value, every = shape.every.key, line, shape.every
    if shape.separator is not None:
        key, found, value = line.partition(shape.separator)
        if not found:
            raise ValueError(f"no {shape.separator.decode(errors='replace')!r} in it")
    return OutRecord(
        _encoded("value", value, shape, codecs),
        None if key is None else _encoded("key", key, shape, codecs),
        every.headers,
        every.partition,
        every.timestamp,
    )


def _encoded(part: Any, written: bytes, shape: Shape, codecs: Codecs) -> bytes | None:
    if written == shape.null:
        return None
    codec, place = codecs.of(part)
    try:
        return codec.encode(written.decode("utf-8", "surrogateescape"), place)
    except FormatError as error:
        raise ValueError(f"{part}: {error}") from None


def _json(line: bytes, shape: Shape, codecs: Codecs) -> OutRecord:
    record, every, ignored = read_line(line, codecs), shape.every, shape.ignored
    own_headers = [] if "headers" in ignored else record.headers or []
    key = None if "key" in ignored else record.key
    partition = None if "partition" in ignored else record.partition
    timestamp = None if "timestamp" in ignored else record.timestamp
    if key is None and every.key is not None:
        key = _encoded("key", every.key, shape, codecs)
    return OutRecord(
        record.value,
        key,
        [*own_headers, *(every.headers or [])],
        partition if every.partition is None else every.partition,
        every.timestamp if timestamp is None else timestamp,
    )
