"""A pipeline of a broker fails in a task of a real Spark: its first cause is a line of the broker's log with the step,
and is seen in `/health` and in `leafcuttr spark status`, also while the next run starts, until that one goes on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spark.commands.piped import NEEDS_SPARK, TEXT, Pipe, Served, serving
from support import librdkafka

pytestmark = NEEDS_SPARK
FUNCTION = """
def checked(row):
    if row["id"] == "x":
        raise ValueError("no order has the id " + row["id"])
    return row
"""
WITHOUT_LETTERS = TEXT.partition("dead-letters")[0]


class Fault(NamedTuple):
    """What a file has in the place of its filter, and what the line says then."""

    step: str
    said: str


FAULTS = {
    "a cast": Fault("filter: CAST(id AS INT) > 0", r"The value 'x' of the type \"STRING\" cannot be cast to \"INT\""),
    "a function": Fault(
        'python: {function: "own_orders:checked", per: record, columns: {id: string, amount: int}}',
        "ValueError: no order has the id x",
    ),
}  # fmt: skip


def status_of(pipe: Pipe, file: Path) -> dict[str, Any]:
    """What the command says of the pipeline."""
    status, out, err = pipe.ran("status", str(file), "--json")
    assert status == 0, err
    found: dict[str, Any] = json.loads("\n".join(out))
    return found


def listed(pipe: Pipe, served: Served) -> dict[str, Any]:
    """What the command says that the broker says."""
    status, out, err = pipe.ran("status", "--admin-server", served.admin, "--json")
    assert status == 0, err
    found: list[dict[str, Any]] = json.loads("\n".join(out))
    return found[0]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_first_cause_is_a_line_and_is_seen_while_it_is_started_again(
    tmp_path: Path, fault: Fault
) -> None:
    folder = tmp_path / ("long-" * 30)
    folder.mkdir()
    with serving(folder) as served:
        pipe = Pipe(served.address, tmp_path, WITHOUT_LETTERS.replace("filter: amount >= 10", fault.step))
        (served.folder / "own_orders.py").write_text(FUNCTION)
        librdkafka.send(served.address, pipe.name, [b'{"id": "x", "amount": 11}'], timestamp=1)
        text = pipe.file.read_text()
        file = served.take(pipe)
        line = re.compile(rf"{re.escape(str(file))}:\d+: steps\[0\] \(large\): {fault.said}")
        served.row(lambda row: row["restarts"] >= 1 and row["state"] == "starting", "the next start")

        # Its own line, and that of who starts it again.
        said = [one for one in served.log.splitlines() if "it is started again in" in one]
        assert said and all(map(line.search, said)), said
        assert "Traceback" not in served.log and "\tat " not in served.log
        for row in (served.row(lambda _: True, "the row"), listed(pipe, served)):
            assert line.search(row["trouble"]), row
        check = served.asked("/health")["checks"]["spark:pipelines"]
        assert check["ok"] is False
        assert check["detail"].startswith(f"{pipe.name}: ") and line.search(check["detail"]), check
        assert line.search(status_of(pipe, file)["trouble"])

        file.write_text(text.replace(fault.step, "filter: amount >= 10"))
        served.row(lambda row: row["rows"] == 1 and row["trouble"] == "", "the end of the trouble")
        assert status_of(pipe, file)["trouble"] == ""
        assert served.asked("/health")["checks"]["spark:pipelines"]["ok"] is True
        assert pipe.amounts() == [11]
