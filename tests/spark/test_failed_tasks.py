"""What made the first attempt of a task fail is found in what Spark keeps of all attempts, and is the line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from leafcuttr_spark.lines import CausedError, one_line
from leafcuttr_spark.pipelines.model import Pipeline, Secrets, Sink, Source, Step, TopicOrigin, TopicTarget
from leafcuttr_spark.pipelines.operations import PythonFunction
from leafcuttr_spark.running.failures import failure_of
from leafcuttr_spark.spark.failed_tasks import (
    TASK_AGAIN,
    SecondAttemptError,
    explained,
    first_failure,
    ran_again,
    stage_again,
)

JAVA = "\n\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.read(PythonRunner.scala:575)\n"


def raised(what: str) -> str:
    """As a task of Spark 4.2 says it."""
    return (
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        f'  File "/spark/worker.py", line 1998, in main\n    process()\n{what}\n{JAVA}'
    )


CAUSE = raised("leafcuttr_sdk.errors.MessageTooLarge: out-1: message too large")
REFUSED = raised(f"leafcuttr_spark.spark.failed_tasks.SecondAttemptError: {TASK_AGAIN}")
OTHER = raised("OSError: the disk was full, and is not any more")
LOST = "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: worker lost"
LINE = f"out-1: message too large; {TASK_AGAIN}"


class Seq:
    """Of Scala, as it is seen through the JVM."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def size(self) -> int:
        return len(self._items)

    def apply(self, place: int) -> Any:
        return self._items[place]


class Spark:
    """A SparkContext that keeps failed tasks: by job its stages, by stage and attempt the tasks' ids and texts."""

    def __init__(
        self, jobs: dict[int, list[int]], failed: Mapping[tuple[int, int], Sequence[tuple[int, str | None]]]
    ) -> None:
        self.jobs, self.failed = jobs, failed
        self.noted = 0
        self.last = {stage: 0 for stages in jobs.values() for stage in stages}
        for stage, attempt in failed:
            self.last[stage] = max(self.last[stage], attempt)
        v1 = SimpleNamespace(
            TaskStatus=SimpleNamespace(FAILED="failed"), TaskSorting=SimpleNamespace(ID="id")
        )
        api = SimpleNamespace(api=SimpleNamespace(v1=v1))
        java = SimpleNamespace(util=SimpleNamespace(ArrayList=JavaList))
        org = SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(status=api)))
        self._jvm = SimpleNamespace(java=java, org=org)
        core = SimpleNamespace(statusStore=lambda: self, listenerBus=lambda: self)
        self._jsc = SimpleNamespace(sc=lambda: core)

    def waitUntilEmpty(self, timeout_ms: int) -> None:
        assert timeout_ms > 0
        self.noted += 1

    def statusTracker(self) -> Any:
        def job(number: int) -> Any:
            return SimpleNamespace(stageIds=self.jobs[number]) if number in self.jobs else None

        def stage(number: int) -> Any:
            return SimpleNamespace(currentAttemptId=self.last[number]) if number != 99 else None

        return SimpleNamespace(getJobInfo=job, getStageInfo=stage)

    def taskList(self, stage: int, attempt: int, first: int, most: int, by: str, wanted: Any) -> Seq:
        assert (first, by, wanted) == (0, "id", ["failed"])
        found = self.failed.get((stage, attempt), [])
        return Seq([task(number, text) for number, text in found[:most]])


class JavaList(list[Any]):
    def add(self, item: Any) -> None:
        self.append(item)


def task(number: int, text: str | None) -> Any:
    message = SimpleNamespace(isDefined=lambda: text is not None, get=lambda: text)
    return SimpleNamespace(taskId=lambda: number, errorMessage=lambda: message)


def why(spark: Any, said: str = REFUSED, jobs: set[int] | None = None) -> str:
    return str(explained(RuntimeError(said), spark, lambda: {4, 5} if jobs is None else jobs))


def test_the_first_attempt_says_why() -> None:
    spark = Spark({4: [6, 7]}, {(7, 0): [(31, CAUSE), (32, REFUSED), (33, REFUSED)]})
    found = explained(RuntimeError(REFUSED), spark, lambda: {4})  # type: ignore[arg-type]
    assert (type(found), str(found)) == (SecondAttemptError, LINE)
    assert spark.noted == 1, "what has ended a moment ago is noted first"


def test_the_first_of_several_tasks_counts_and_not_what_was_made_good() -> None:
    failed = {(6, 0): [(20, OTHER)], (7, 0): [(33, REFUSED), (32, OTHER), (31, CAUSE)]}
    assert why(Spark({4: [6, 7]}, failed)) == LINE, "stage 6 went on"
    assert why(Spark({4: [7], 5: [6, 99]}, failed)) == LINE, "of several jobs too"


def test_what_says_nothing_leaves_the_line_of_the_second_attempt() -> None:
    assert why(Spark({4: [7]}, {(7, 0): [(32, REFUSED)]})) == TASK_AGAIN
    assert why(Spark({4: [7]}, {(7, 0): [(31, None), (32, REFUSED)]})) == TASK_AGAIN
    assert why(Spark({}, {})) == TASK_AGAIN, "Spark has forgotten the job"


def test_another_version_of_spark_costs_the_cause_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Spark({4: [7]}, {(7, 0): [(31, CAUSE), (32, REFUSED)]})
    monkeypatch.setattr(spark, "taskList", lambda *given: given[9])
    assert why(spark) == TASK_AGAIN
    monkeypatch.delattr(spark, "_jsc")
    assert why(spark) == TASK_AGAIN
    monkeypatch.setattr(spark, "statusTracker", lambda: None)
    error = RuntimeError(REFUSED)
    assert explained(error, spark, lambda: {4}) is error  # type: ignore[arg-type]


def test_other_failures_are_as_they_are() -> None:
    spark = Spark({4: [7]}, {(7, 0): [(31, CAUSE)]})
    error = RuntimeError(CAUSE)
    assert explained(error, spark, lambda: {4}) is error  # type: ignore[arg-type]


def test_a_stage_that_ran_again_is_named_with_what_ended_it_before() -> None:
    spark: Any = Spark({4: [6, 7]}, {(6, 0): [(20, LOST)], (6, 1): [], (7, 0): [(31, CAUSE), (32, REFUSED)]})
    assert list(ran_again(spark, {4})) == [6]
    assert why(spark).endswith(
        "; Spark ran stage 6 of the batch again, which spoils the transaction: the batch fails"
    )
    lost = Spark({4: [6, 7]}, {(6, 0): [(20, LOST)], (6, 1): []})
    assert str(stage_again(lost, {4}, 6)).startswith(LOST)  # type: ignore[arg-type]
    later = Spark({4: [7]}, {(7, 0): [], (7, 1): [(40, CAUSE), (41, REFUSED)]})
    assert why(later).startswith("out-1: message too large; Spark ran stage 7"), "of any attempt of the stage"
    assert why(lost, "the cluster refused a number").startswith(LOST), "with one attempt of each task"


def test_so_much_is_read_and_no_more() -> None:
    many = [(number, REFUSED) for number in range(32, 1000)]
    spark = Spark({4: [7]}, {(7, 0): [(31, "x" * 1_000_000 + CAUSE), *many]})
    assert len(first_failure(spark, {4})) == 64 << 10  # type: ignore[arg-type]
    assert why(spark) == LINE


PIPELINE = Pipeline(
    "p",
    {"in": Source(TopicOrigin(("orders",)), line=3)},
    (Step("clean", PythonFunction("mypackage.functions:clean"), "in", line=7),),
    {"a": Sink("in", TopicTarget("out-1"), line=9), "b": Sink("in", TopicTarget("out"), line=15)},
    secrets=Secrets(frozenset({"hunter22"})),
)


def test_the_line_of_a_run_has_the_step_and_no_secret() -> None:
    found = failure_of(SecondAttemptError(TASK_AGAIN, CAUSE), PIPELINE)
    assert (found.step, found.line, found.message) == ("sinks.b", 15, LINE)
    read = raised(
        "leafcuttr_spark.source.rows.DecodeError: orders-3: the record at offset 17 cannot be decoded: x"
    )
    found = failure_of(SecondAttemptError(TASK_AGAIN, read), PIPELINE)
    assert found.step == "sources.in"
    assert "orders-3: the record at offset 17 cannot be decoded: x; Spark tried" in found.message
    for size in range(380, 440):
        found = failure_of(
            SecondAttemptError(TASK_AGAIN, raised(f"E: {'x' * size}hunter22 is wrong")), PIPELINE
        )
        assert "hun" not in found.message
    inside = raised('  File "/home/me/mypackage/functions.py", line 12, in clean\nValueError: no such thing')
    found = failure_of(SecondAttemptError(TASK_AGAIN, inside), PIPELINE)
    assert (found.step, found.line) == ("steps[0] (clean)", 7), "by what the line leaves out"
    found = failure_of(SecondAttemptError(TASK_AGAIN, raised(f"E: {'x' * 1000}\ny")), PIPELINE)
    assert len(found.message) == 500
    assert found.message.endswith(f"xxx...; {TASK_AGAIN}")
    assert "\n" not in found.message


def test_without_a_cause_it_is_the_result() -> None:
    assert str(CausedError("it fails")) == one_line(CausedError("it fails")) == "it fails"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"org.apache.spark.SparkException: Python worker crashed{JAVA}", "Python worker crashed"),
        (f"java.lang.OutOfMemoryError: Java heap space{JAVA}", "OutOfMemoryError: Java heap space"),
        (LOST, LOST),
    ],
)  # fmt: skip
def test_what_ends_a_task_without_a_word_of_python(text: str, line: str) -> None:
    assert str(CausedError("so it fails", text)) == f"{line}; so it fails"
