"""Records that a format makes itself (`leafcuttr_sdk.formats.RecordMaker`), for `perf produce`.

They are made before anything is measured, and sent in turn: a format need not be quick.
"""

from collections.abc import Sequence
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any, Final

import click

from leafcuttr.cli.common.records.formats import Formats, check_options, known_formats, options_given
from leafcuttr_sdk.formats import FormatError

if TYPE_CHECKING:
    from leafcuttr_sdk.records import Record

USUAL_RECORDS: Final = 4096
USUAL_BYTES: Final = 16 * 1024 * 1024
"""Of keys and values, unless the user says how many records."""


def records_made(
    name: str, settings: Sequence[str], topic: str, seed: int, wanted: int, distinct: int | None
) -> "list[Record]":
    """The first records that the format of this name makes with this seed: at least one, `wanted` at most, and as many
    as `distinct` if that is given. Raises click.UsageError, one line, for a format that makes none."""
    given = options_given(settings)
    known = known_formats()
    try:
        one: Any = known.get(name)
        if not getattr(one, "makes_records", False):
            raise FormatError(f"{name} makes no records; {_those_that_do(known)}")
        check_options(given, [one])
        made: list[Record] = []
        size = 0
        # Random of a text: the same for every version of Python and on every machine.
        making = one.make_records(topic, given, Random(str(seed)))
        for record in islice(making, min(wanted, distinct or USUAL_RECORDS)):
            made.append(record)
            size += sum(len(part or b"") for part in (record.key, record.value))
            if distinct is None and size >= USUAL_BYTES:
                break
        if not made:
            raise FormatError(f"{name} has made no record")
    except FormatError as error:
        raise click.UsageError(f"--format: {error}") from None
    return made


def _those_that_do(known: Formats) -> str:
    names = [one.name for one in known if getattr(one, "makes_records", False)]
    return f"those that do: {', '.join(names)}" if names else "no format that is installed does"
