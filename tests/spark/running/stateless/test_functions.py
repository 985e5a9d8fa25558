"""SQL and functions in Python on a real Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from leafcuttr_spark.pipelines.errors import PipelineError, PipelineRefusedError
from leafcuttr_spark.pipelines.operations import Apply, Map, PythonFunction, Sql
from spark.running.stateless.steps import HERE, compiled, frame_of, rows

DDL = "id INT, text STRING"
ROWS = [(1, "10"), (2, "x"), (3, None)]


def function(name: str, **given: Any) -> PythonFunction:
    return PythonFunction(f"own_functions:{name}", **given)


def test_sql_over_several_frames(spark: Any) -> None:
    one, other = frame_of(spark, ROWS, DDL), frame_of(spark, [(1, 5)], "id INT, sum INT")
    query = Sql("SELECT a.id, sum FROM a JOIN b ON a.id = b.id", ("a", "b"))
    assert rows(compiled(spark, query, one, other)) == [{"id": 1, "sum": 5}]
    assert not spark.catalog.tableExists("a"), "views are gone"


@pytest.mark.parametrize(
    ("query", "keeps"),
    [
        ("SELECT id FROM a", True),
        ("select upper(text) AS t FROM a WHERE id < 9", True),
        ("SELECT * FROM a", True),
        ("SELECT DISTINCT id FROM a", False),
        ("SELECT count(*) AS n FROM a", False),
        ("SELECT id FROM a GROUP BY id", False),
        ("WITH b AS (SELECT id FROM a) SELECT id FROM b", False),
        ("SELECT explode(array(id)) AS one FROM a", False),
        ("SELECT crc32(text) AS one FROM a", True),
        ("SELECT count_min_sketch(id, 0.5d, 0.5d, 1) AS one FROM a", False),
    ],
)
def test_sql_that_takes_rows_as_they_are_keeps_their_records(spark: Any, query: str, keeps: bool) -> None:
    from leafcuttr_spark.running.rows import RECORD

    frame = frame_of(spark, ROWS, DDL, record=True)
    assert (RECORD in compiled(spark, Sql(query, ("a",)), frame).columns) == keeps


def test_rows_with_errors_go_around_sql_and_functions(spark: Any) -> None:
    from leafcuttr_spark.running.compilers import COMPILERS
    from spark.running.stateless.steps import context_of

    failing = compiled(spark, Map({"n": "cast(text as int)"}), frame_of(spark, ROWS, DDL, record=True))
    for operation in (Sql("SELECT n FROM a", ("a",)), function("with_more"), Apply(lambda frame: frame)):
        context = context_of(spark, operation)
        done = COMPILERS[type(operation)](operation, [failing], context)
        assert len(rows(done)) == 2
        (aside,) = context.common.asides
        assert rows(aside) == ["this failed: n: cast(text as int)"]


def test_a_function_by_its_path(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    frame = frame_of(spark, ROWS[:1], DDL)
    done = compiled(
        spark, function("with_more", arguments={"more": 4}, columns="id INT, text STRING, more INT"), frame
    )
    assert rows(done) == [{"id": 1, "text": "10", "more": 5}]
    with pytest.raises(
        PipelineError, match="gave the columns id int, text string, more int, and columns says id int"
    ):
        compiled(spark, function("with_more", columns="id INT"), frame)
    with pytest.raises(
        PipelineRefusedError, match="own_functions:no_frame gave str, and has to give a DataFrame"
    ):
        compiled(spark, function("no_frame"), frame)
    with pytest.raises(PipelineRefusedError, match="the module own_functions has no nothing"):
        compiled(spark, function("nothing"), frame)
    with pytest.raises(PipelineRefusedError, match="there is no module not_there"):
        compiled(spark, PythonFunction("not_there:x"), frame)


def test_a_function_in_python(spark: Any) -> None:
    frame = frame_of(spark, ROWS, DDL)
    assert rows(compiled(spark, Apply(lambda frame: frame.limit(1)), frame)) == [{"id": 1, "text": "10"}]


@pytest.mark.on_spark
def test_a_function_of_records(spark: Any) -> None:
    frame = frame_of(spark, ROWS, DDL, record=True)
    operation = function("spread", per="record", arguments={"times": 2}, columns="id INT, part INT")
    assert rows(compiled(spark, operation, frame)) == [
        {"id": 1, "part": 0},
        {"id": 1, "part": 1},
        "ValueError: an x is no number",
    ]
    with pytest.raises(Exception, match=r"steps\[0\] \(s\): ValueError: an x is no number"):
        rows(compiled(spark, operation, frame, catches=False))
    wrong = rows(compiled(spark, function("wrong_type", per="record", columns="id INT, part INT"), frame))
    assert wrong[0] == {"id": 1, "part": 0}
    assert wrong[1].startswith("ArrowInvalid: ")
    assert wrong[2] == {"id": 3, "part": 0}


def test_a_row_that_python_cannot_hold_is_an_error_of_its_own() -> None:
    """A timestamp may lie beyond what a `datetime` holds: the other rows of the batch are none the worse."""
    pytest.importorskip("pyspark")
    from leafcuttr_spark.running.stateless.functions import FunctionError, _caller

    micros = [0, 253_402_300_800_000_000, -(2**62)]
    times = pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC"))
    given = pa.StructArray.from_arrays([times], names=["at"])
    kind = pa.struct([("year", pa.int64())])
    made = _caller("own_functions:year", {}, HERE, kind, None)(given).to_pylist()
    assert [each["rows"] for each in made] == [[{"year": 1970}], None, None]
    assert [(each["error"] or "").partition(":")[0] for each in made] == [
        "",
        "OverflowError",
        "OverflowError",
    ]
    with pytest.raises(FunctionError, match=r"^steps\[0\] \(x\): OverflowError: [^\n]+$"):
        _caller("own_functions:year", {}, HERE, kind, "steps[0] (x)")(given)
