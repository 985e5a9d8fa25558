"""`check_sink` passes a sink that replaces batches, and says what is wrong with others. Rows are lists here: the kit
needs no more of a frame than a sink does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from leafcuttr_sdk.testing.report import ContractError
from leafcuttr_spark.contracts import SinkBatch
from leafcuttr_spark.testing import PROMISES, check_sink, sink_report


class Session:
    """As much of a session as the kit uses."""

    def createDataFrame(self, rows: list[Any], ddl: str) -> Any:
        assert ddl == "id BIGINT, name STRING"
        return Frame(rows)


class Frame:
    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def repartition(self, tasks: int) -> Frame:
        assert tasks >= 1
        return self


SESSION: Any = Session()


class Replaces:
    """By batch, in memory that all instances share."""

    def __init__(self, kept: dict[Any, list[Any]]) -> None:
        self.kept = kept

    def key(self, batch: SinkBatch) -> Any:
        return batch

    def write(self, rows: Any, batch: SinkBatch) -> None:
        self.kept[self.key(batch)] = rows.rows


class Appends(Replaces):
    def write(self, rows: Any, batch: SinkBatch) -> None:
        self.kept.setdefault(None, []).extend(rows.rows)


class ForgetsAtRestart(Replaces):
    def key(self, batch: SinkBatch) -> Any:
        return id(self), batch


class ForgetsQuery(Replaces):
    def key(self, batch: SinkBatch) -> Any:
        return batch.number


class Fails(Replaces):
    def write(self, rows: Any, batch: SinkBatch) -> None:
        raise OSError("the disk is full")


class Loses(Replaces):
    def write(self, rows: Any, batch: SinkBatch) -> None:
        self.kept[batch] = rows.rows[1:]


def report_of(class_: type[Replaces]) -> Any:
    kept: dict[Any, list[Any]] = {}

    def read() -> Iterable[Any]:
        return [row for rows in kept.values() for row in rows]

    return sink_report(lambda: class_(kept), read, SESSION)


def test_a_sink_that_keeps_its_contract() -> None:
    report = report_of(Replaces)
    assert report.fine
    assert [check.name for check in report.checks] == list(PROMISES)
    kept: dict[Any, list[Any]] = {}
    check_sink(lambda: Replaces(kept), lambda: [row for rows in kept.values() for row in rows], SESSION)


@pytest.mark.parametrize(
    ("class_", "check", "problem"),
    [
        (Appends, "again", "10 of 10 rows are more than once, (0, 'name-0') for one"),
        (ForgetsAtRestart, "restart", "10 of 10 rows are more than once, (0, 'name-0') for one"),
        (ForgetsQuery, "query", "10 of 20 rows are missing, (0, 'name-0') for one"),
        (Fails, "writes", "`write` raised OSError: the disk is full"),
        (Loses, "writes", "1 of 10 rows are missing, (0, 'name-0') for one"),
    ],
)
def test_what_is_wrong_is_said(class_: type[Replaces], check: str, problem: str) -> None:
    report = report_of(class_)
    found = {each.name: each.problems for each in report.checks if each.problems}
    assert next(iter(found)) == check
    assert found[check] == (problem,)
    with pytest.raises(ContractError, match="the sink "):
        report.raise_problems()
