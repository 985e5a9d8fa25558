# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false
"""What made the first attempt of a task fail, where a later one was refused: Spark's own exception quotes the last.

The driver keeps the end of each attempt of each task, on whichever machine it ran and however it ended, also by the
loss of its executor, which could leave nothing behind. It is read where Spark's web page has it from
(`AppStatusStore`), which is there without the page. That is no interface for programs: a version of Spark that has it
otherwise costs the cause in the line, and nothing else.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from leafcuttr_spark.lines import CausedError

if TYPE_CHECKING:
    from pyspark import SparkContext

LOGGER: Final = logging.getLogger("leafcuttr.spark")

TASK_AGAIN: Final = "Spark tried the task again, which spoils the transaction: the batch fails"
_MOST: Final = 50
"""Failed tasks of an attempt of a stage that are read."""
_KEPT: Final = 64 << 10
"""Characters of what one has failed with, from its end: the innermost traceback is the last."""
_WAIT_MS: Final = 2000
"""For what Spark has not yet noted of the job that has just ended."""


class SecondAttemptError(CausedError):
    """A task or a stage of a transaction ran more than once."""


class _Failed(NamedTuple):
    stage: int
    task: int
    """Spark numbers all attempts of all tasks in the order in which they begin."""
    text: str

    @property
    def is_refused(self) -> bool:
        return SecondAttemptError.__name__ in self.text


def explained(error: Exception, context: "SparkContext", jobs: Callable[[], set[int]]) -> Exception:
    """What these jobs failed with: this error, or what came before the attempt that it is of."""
    try:
        note_all(context)
        ended = jobs()
        again = next(ran_again(context, ended), None)
        if again is not None:
            return stage_again(context, ended, again)
        if SecondAttemptError.__name__ not in str(error):
            return error
        return SecondAttemptError(TASK_AGAIN, first_failure(context, ended))
    except Exception:
        # As of a JVM that is gone, which has the text of its exception too.
        LOGGER.debug("why the first attempt of a task has failed", exc_info=True)
        return error


def stage_again(context: "SparkContext", jobs: Iterable[int], stage: int) -> SecondAttemptError:
    """The error of jobs of which this stage ran more than once."""
    return SecondAttemptError(
        f"Spark ran stage {stage} of the batch again, which spoils the transaction: the batch fails",
        first_failure(context, jobs),
    )


def ran_again(context: "SparkContext", jobs: Iterable[int]) -> Iterator[int]:
    """Stages that did: an executor with their results was lost."""
    return (stage for stage, attempts in _stages(context, jobs) if attempts > 1)


def first_failure(context: "SparkContext", jobs: Iterable[int]) -> str:
    """The text of what failed first; empty where Spark does not say. Of jobs with tasks that were refused it is of a
    stage of such a one: what another stage failed with has been made good."""
    try:
        found = sorted(_failed(context, jobs), key=lambda each: each.task)
    except Exception:
        LOGGER.debug("what the tasks of a job have failed with", exc_info=True)
        return ""
    refused = {each.stage for each in found if each.is_refused}
    causes = (each for each in found if not each.is_refused and (not refused or each.stage in refused))
    return next((each.text for each in causes), "")


def note_all(context: Any) -> None:
    """Let Spark note what has ended so far."""
    try:
        context._jsc.sc().listenerBus().waitUntilEmpty(_WAIT_MS)
    except Exception:
        LOGGER.debug("what the tasks of a job have failed with may not be known yet", exc_info=True)


def _failed(context: Any, jobs: Iterable[int]) -> Iterator[_Failed]:
    store, java = context._jsc.sc().statusStore(), context._jvm.org.apache.spark.status.api.v1
    wanted = context._jvm.java.util.ArrayList()
    wanted.add(java.TaskStatus.FAILED)
    for stage, attempts in _stages(context, jobs):
        for attempt in range(attempts):
            found = store.taskList(stage, attempt, 0, _MOST, java.TaskSorting.ID, wanted)
            for place in range(found.size()):
                task = found.apply(place)
                message = task.errorMessage()
                text = str(message.get())[-_KEPT:] if message.isDefined() else ""
                yield _Failed(stage, int(task.taskId()), text)


def _stages(context: "SparkContext", jobs: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The stages of these jobs, and how often each ran."""
    tracker = context.statusTracker()
    for job in sorted(jobs):
        found = tracker.getJobInfo(job)
        for stage in found.stageIds if found is not None else ():
            ran = tracker.getStageInfo(stage)
            if ran is not None:
                yield stage, ran.currentAttemptId + 1
