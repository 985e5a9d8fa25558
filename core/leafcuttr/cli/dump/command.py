"""`leafcuttr dump`: print what files of a data directory hold, or check its indexes.

The reading is `leafcuttr.offline.dump`, the checks are `leafcuttr.offline.verify_segment`.

Exit status: 0 all was readable, 1 damage was found (it is printed at its position), 2 wrong usage or a file that
cannot be read or is of an unknown kind.
"""

import errno
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from leafcuttr.cli.common.offline import fail
from leafcuttr.cli.common.records.formats import format_options, opened
from leafcuttr.cli.common.records.json_lines import Codecs
from leafcuttr_sdk.formats import FormatError

if TYPE_CHECKING:
    from leafcuttr.offline.dump import Depth, Show
    from leafcuttr.offline.findings import FileFinding
    from leafcuttr.wire.records import Record

_INDEXES = (".index", ".timeindex")


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option("--files", "listed", metavar="FILE,FILE...", help="The same, with commas between.")
@click.option("--records", "--print-data-log", "-r", is_flag=True, help="Print keys, values and headers too.")
@click.option(
    "--deep-iteration/--batches",
    "deep",
    default=True,
    show_default=True,
    help="Look into each batch and print its records; or print the batches only.",
)
@click.option(
    "--skip-record-metadata",
    is_flag=True,
    help="Of records print only keys, values and headers; no control records.",
)
@click.option("--offsets-decoder", is_flag=True, help="Decode records as those of __consumer_offsets.")
@click.option(
    "--transaction-log-decoder", is_flag=True, help="Decode records as those of __transaction_state."
)
@format_options
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    metavar="BYTES",
    help="Read no batch that begins after so many bytes of a log.",
)
@click.option(
    "--index-sanity-check",
    is_flag=True,
    help="Print nothing of an index, but check that its entries are whole and ascend.",
)
@click.option(
    "--verify-index-only",
    is_flag=True,
    help="Print nothing of an index, but check every entry against the log beside it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line.")
def command(files: tuple[Path, ...], listed: str | None, as_json: bool, **given: Any) -> None:
    """Print what files of a data directory hold: logs, indexes, producer snapshots, checkpoints.

    The kind of a file follows from its name. Of a log every batch is printed, its CRC checked, and every record in it;
    with --records what the records say. Those of __consumer_offsets and __transaction_state are decoded: the folder's
    name tells them, or an option. A broker may be running. The options of kafka-dump-log have the same meaning.

    \b
    Examples:
      leafcuttr dump leafcuttr-data/orders-0/00000000000000000000.log
      leafcuttr dump --records --format json leafcuttr-data/orders-0/*.log
      leafcuttr dump --batches --json --max-bytes 1000000 leafcuttr-data/orders-0/*.log
      leafcuttr dump --verify-index-only leafcuttr-data/orders-0/*.index leafcuttr-data/orders-0/*.timeindex
      leafcuttr dump leafcuttr-data/orders-0/*.index leafcuttr-data/recovery-point-offset-checkpoint

    Exit status: 0 all was readable, 1 damage was found (it is printed at its position), 2 wrong usage or a file that
    cannot be read or is of an unknown kind.
    """
    files += tuple(Path(name.strip()) for name in (listed or "").split(",") if name.strip())
    if not files:
        raise click.UsageError("expected at least one file")
    if given["offsets_decoder"] and given["transaction_log_decoder"]:
        raise click.UsageError("--offsets-decoder and --transaction-log-decoder: one of them")
    damaged = False
    with opened(given["value_format"], given["key_format"], given["format_settings"]) as (of_keys, of_values):
        for file in files:
            try:
                show = _show(Codecs(file.resolve().parent.name.rpartition("-")[0], of_keys, of_values), given)
                if len(files) > 1 and not as_json:
                    click.echo(f"{file}:")
                for row in _rows(file, given, show):
                    damaged = damaged or _is_damaged(row)
                    click.echo(json.dumps({"file": str(file), **row}) if as_json else _text(row))
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(0)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise  # the output's trouble: nothing is written to the file
                fail(f"cannot read {file}: {error.strerror}")
            except ValueError as error:
                fail(error if str(file) in str(error) else f"{file}: {error}")
    sys.exit(1 if damaged else 0)


def _rows(file: Path, given: dict[str, Any], show: "Show | None") -> Iterator[dict[str, Any]]:
    from leafcuttr.offline.dump import Decoder, dump_file

    checks = given["index_sanity_check"] or given["verify_index_only"]
    if checks and file.suffix in _INDEXES:
        yield from _checked(file, against_log=given["verify_index_only"])
        return
    decoder = Decoder.NAME
    if given["offsets_decoder"]:
        decoder = Decoder.OFFSETS
    elif given["transaction_log_decoder"]:
        decoder = Decoder.TRANSACTIONS
    yield from dump_file(file, depth=_depth(given), decoder=decoder, max_bytes=given["max_bytes"], show=show)


def _depth(given: dict[str, Any]) -> "Depth":
    from leafcuttr.offline.dump import Depth

    if given["skip_record_metadata"]:
        return Depth.CONTENTS_ALONE
    decodes = given["offsets_decoder"] or given["transaction_log_decoder"]
    if given["records"] or decodes:
        return Depth.CONTENTS
    return Depth.RECORDS if given["deep"] else Depth.BATCHES


def _show(codecs: Codecs, given: dict[str, Any]) -> "Show | None":
    """Keys and values in the formats that were named; bytes that are not of one as {"base64": ...}."""
    if (given["value_format"], given["key_format"], given["format_settings"]) == ("text", None, ()):
        return None
    from leafcuttr.offline.dump import readable

    def show(part: Literal["key", "value"], record: "Record") -> Any:
        data = record.key if part == "key" else record.value
        if data is None:
            return None
        codec, place = (
            codecs.of_record(part, lambda: record.headers) if codecs.need_headers else codecs.of(part)
        )
        try:
            text = codec.decode(data, place)
            text.encode()
        except (FormatError, UnicodeEncodeError):
            return readable(data)
        return json.loads(text) if codec.json_text else text

    return show


def _checked(file: Path, *, against_log: bool) -> list[dict[str, Any]]:
    """What is wrong with an index, a row each; one row without damage if nothing is."""
    from leafcuttr.offline.findings import Severity
    from leafcuttr.offline.verify_indexes import check_index_alone
    from leafcuttr.offline.verify_segment import SegmentRules, check_segment

    found: list[FileFinding] = []
    base = file.name.partition(".")[0]
    if not base.isdecimal():
        raise ValueError(f"{file}: not the name of an index")
    entries = check_index_alone(file, int(base), found.append)
    if against_log and not found:
        log = file.with_suffix(".log")
        rules = SegmentRules(expected=-1, gaps=Severity.NOTE, open_tail=None, deep=False)
        check_segment(log, int(base), rules, found.append, lambda _: None)
        found = [one for one in found if one.path == file]
    rows: list[dict[str, Any]] = [
        {"position": one.position, "damage" if one.severity is Severity.PROBLEM else "note": one.text}
        for one in found
    ]
    return rows or [{"entries": entries, "sound": True}]


def _is_damaged(row: dict[str, Any]) -> bool:
    return "damage" in row or any("damage" in record for record in row.get("records", ()))


def _text(row: dict[str, Any]) -> str:
    lines = [" ".join(f"{name}={_value(value)}" for name, value in row.items() if name != "records")]
    for record in row.get("records", ()):
        lines.append("  " + " ".join(f"{name}={_value(value)}" for name, value in record.items()))
    return "\n".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | list | dict):
        # JSON's quoting keeps a record from moving the cursor of the terminal.
        return json.dumps(value, ensure_ascii=False)
    return "null" if value is None else str(value)
