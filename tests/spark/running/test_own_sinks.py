"""The contract of a sink in Python, on a real Spark: what crash tests write by holds it, what appends does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from leafcuttr_spark.testing import check_sink, sink_report
from support.own_sinks import Appends, Table, read_table


def test_a_table_by_batches_holds_it(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "table.db"
    check_sink(
        lambda: Table(str(path)),
        lambda: [(row["id"], row["name"]) for _, _, row in read_table(path)],
        spark,
    )


def test_what_appends_does_not(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    report = sink_report(
        lambda: Appends(str(path)),
        lambda: [tuple(json.loads(line).values()) for line in path.read_text().splitlines()],
        spark,
    )
    assert any("10 of 10 rows are more than once" in str(problem) for problem in report.problems)
