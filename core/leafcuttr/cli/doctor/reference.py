"""The reference page of the doctor's checks, from its tables: `python -m leafcuttr.cli.doctor.reference` prints it.

A test compares the page in the documentation with it.
"""

import inspect
import sys
from collections.abc import Sequence
from typing import Any, Final

from leafcuttr.cli.doctor.findings import DoctorCheck, DoctorSeverity
from leafcuttr.cli.doctor.local import checks as local
from leafcuttr.cli.doctor.remote import checks as remote

_HEAD: Final = """\
# What the doctor checks

<!-- Written by `python -m leafcuttr.cli.doctor.reference`; a test fails when this page and the code differ. -->

[`leafcuttr doctor`](cli.md#leafcuttr-doctor) runs the checks of these tables in their order. A check that needs another
is skipped when that one has found a problem. Every finding says what was seen; a warning or a problem also says why it
matters and which lines to change, best first.

With `--json` it prints one object: `healthy`, the numbers of `problems` and `warnings`, and `examined`, a list with
`subject` and `findings` of each subject. A finding has `check`, `severity`, `seen`, `why` and `change`, a
list of lines. The severities are {severities}. The exit status is 0 if `healthy`, else 1;
`--strict` counts warnings too.
"""


def page() -> str:
    """The whole page, in Markdown."""
    severities = ", ".join(f"`{one.value}`" for one in DoctorSeverity)
    return (
        _HEAD.format(severities=severities)
        + _table("A broker, seen from this machine: `doctor HOST:PORT`", remote.CHECKS)
        + _table("A configuration, on this machine: `doctor --config FILE`", local.CHECKS)
    )


def _table(title: str, checks: Sequence[DoctorCheck[Any]]) -> str:
    rows = [
        f"| `{check.name}` | {_promise(check)} | {', '.join(f'`{name}`' for name in check.needs)} |\n"
        for check in checks
    ]
    return f"\n## {title}\n\n| check | what has to be true | needs |\n|---|---|---|\n" + "".join(rows)


def _promise(check: DoctorCheck[Any]) -> str:
    text = inspect.getdoc(check.look) or ""
    return " ".join(text.partition("\n\n")[0].split())


if __name__ == "__main__":
    sys.stdout.write(page())
