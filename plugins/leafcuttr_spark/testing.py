# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false
"""For tests of what others write for pipelines: `check_sink`, the contract of a sink in Python.

def test_my_sink(spark, tmp_path):
    check_sink(lambda: MySink(tmp_path), lambda: read_back(tmp_path), spark)
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_sdk.testing.report import Notes, Report, literally, told
from leafcuttr_spark.contracts import Sink, SinkBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROMISES: Final = {
    "writes": "the rows of a batch are there once `write` has returned",
    "again": "the same batch, in another order and in other tasks, leaves each row once",
    "restart": "so it is for another instance, as after the pipeline was started again",
    "next": "another batch adds its rows",
    "query": "a batch of another query is another batch, whatever its number",
    "empty": "a batch without rows changes nothing",
}

_DDL: Final = "id BIGINT, name STRING"


def check_sink(
    make: Callable[[], Sink],
    read: Callable[[], Iterable[Sequence[Any]]],
    spark: "SparkSession",
    *,
    ddl: str = _DDL,
    row: Callable[[int], tuple[Any, ...]] = lambda number: (number, f"name-{number}"),
) -> None:
    """Check a sink that is empty at first. `make` makes an instance, `read` gives all rows that it has, in any order.
    The rows have the columns of `ddl`, and are what `row` makes of numbers. Raises ContractError with all that is
    wrong."""
    sink_report(make, read, spark, ddl=ddl, row=row).raise_problems()


def sink_report(
    make: Callable[[], Sink],
    read: Callable[[], Iterable[Sequence[Any]]],
    spark: "SparkSession",
    *,
    ddl: str = _DDL,
    row: Callable[[int], tuple[Any, ...]] = lambda number: (number, f"name-{number}"),
) -> Report:
    """The report that `check_sink` would raise."""

    def frame(numbers: Iterable[int], tasks: int) -> "DataFrame":
        return spark.createDataFrame([row(number) for number in numbers], ddl).repartition(tasks)

    first = make()
    notes = Notes("sink", type(first).__name__, PROMISES)
    second = make()
    steps = (
        ("writes", first, SinkBatch("query-a", 0), range(10), 2, range(10)),
        ("again", first, SinkBatch("query-a", 0), reversed(range(10)), 1, range(10)),
        ("restart", second, SinkBatch("query-a", 0), range(10), 3, range(10)),
        ("next", second, SinkBatch("query-a", 1), range(10, 15), 1, range(15)),
        ("empty", second, SinkBatch("query-a", 2), (), 1, range(15)),
        ("query", second, SinkBatch("query-b", 0), range(15, 20), 2, range(20)),
    )
    done = []
    for name, sink, batch, numbers, tasks, expected in steps:
        done.append(name)
        try:
            sink.write(frame(numbers, tasks), batch)
        except Exception as error:
            notes.add(name, literally(f"`write` raised {told(error)}"))
            break
        _compare(notes, name, sorted(map(tuple, read())), sorted(map(row, expected)))
    return notes.report(done)


def _compare(notes: Notes, name: str, found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    twice = sorted({each for each in found if found.count(each) > 1})
    missing = [each for each in expected if each not in found]
    others = [each for each in found if each not in expected]
    for what, rows in (("more than once", twice), ("missing", missing), ("not of this batch", others)):
        if rows:
            notes.add(name, literally(f"{len(rows)} of {len(expected)} rows are {what}, {rows[0]!r} for one"))
