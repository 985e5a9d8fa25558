"""`leafcuttr dump`: print what files of a data directory hold. The reading is `leafcuttr.offline.dump`.

Exit status: 0 all was readable, 1 damage was found (it is printed where it lies), 2 wrong usage or a file that
cannot be read or is of no kind known here.
"""

import json
import sys
from pathlib import Path
from typing import Any

import click

from leafcuttr.cli.offline import fail


@click.command()
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE...",
)
@click.option("--records", "-r", is_flag=True, help="Of a .log file: print the records too.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line.")
def command(files: tuple[Path, ...], records: bool, as_json: bool) -> None:
    """Print what files of a data directory hold: logs, indexes, producer snapshots, checkpoints.

    The kind of a file follows from its name. Records of __consumer_offsets are decoded. A broker may be running.

    \b
    Examples:
      leafcuttr dump leafcuttr-data/orders-0/00000000000000000000.log
      leafcuttr dump --records --json leafcuttr-data/orders-0/*.log
      leafcuttr dump leafcuttr-data/orders-0/*.index leafcuttr-data/recovery-point-offset-checkpoint
    """
    from leafcuttr.offline.dump import dump_file

    damaged = False
    for file in files:
        try:
            if len(files) > 1 and not as_json:
                click.echo(f"{file}:")
            for row in dump_file(file, records=records):
                damaged = damaged or _is_damaged(row)
                click.echo(json.dumps({"file": str(file), **row}) if as_json else _text(row))
        except BrokenPipeError:
            sys.exit(0)
        except OSError as error:
            fail(f"cannot read {file}: {error.strerror}")
        except ValueError as error:
            fail(error if str(file) in str(error) else f"{file}: {error}")
    sys.exit(1 if damaged else 0)


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
