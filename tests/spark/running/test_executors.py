"""A batch that waits for executors that do not come says so once they are late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from leafcuttr_spark.running.executors import LOOK_S, WAIT_S, ExecutorWatch, executor_watch


class Watched:
    """A session whose clock goes on by hand."""

    def __init__(self) -> None:
        self.count: int | None = 0
        self.now = 100.0
        self.looks = 0
        self.watch = ExecutorWatch(self._look, "has it a worker?", lambda: self.now)

    def _look(self) -> int | None:
        self.looks += 1
        return self.count

    def after(self, seconds: float) -> str:
        self.now += seconds
        return self.watch.trouble()


def test_late_executors_are_said_until_one_comes() -> None:
    found = Watched()
    line = "the batch waits for an executor, and none has come for 30 s: has it a worker?"
    assert [found.after(0), found.after(WAIT_S - 0.1), found.after(0.1)] == ["", "", line]
    found.count = 1
    assert found.after(LOOK_S - 1) == line, "it is not asked so often"
    assert found.after(1) == ""
    found.count = 0
    assert [found.after(LOOK_S), found.after(WAIT_S - 0.1), found.after(0.1)] == ["", "", line]


def test_where_nothing_waits_none_are_missed() -> None:
    found = Watched()
    assert found.after(0) == ""
    found.count = None
    assert found.after(WAIT_S - 1) == ""
    found.count = 0
    assert [found.after(LOOK_S), found.after(WAIT_S - 1), found.after(1)] == ["", "", found.watch.trouble()]
    assert found.watch.trouble() != ""


def test_it_is_asked_once_in_a_while() -> None:
    found = Watched()
    for _ in range(10):
        found.after(LOOK_S / 10)
    assert found.looks == 1


def session(master: str, size: int, stages: list[int], **config: str) -> Any:
    memory = SimpleNamespace(size=lambda: size)
    context = SimpleNamespace(
        master=master,
        getConf=lambda: SimpleNamespace(get=lambda key, default=None: config.get(key, default)),
        statusTracker=lambda: SimpleNamespace(getActiveStageIds=lambda: stages),
        _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(getExecutorMemoryStatus=lambda: memory)),
    )
    return SimpleNamespace(_jvm=object(), sparkContext=context)


@pytest.mark.parametrize(
    ("master", "size", "stages", "count"),
    [
        ("spark://a:7077", 1, [3], 0),
        ("spark://a:7077", 2, [3], 1),
        ("spark://a:7077", 1, [], None),
        ("local-cluster[2,1,512]", 1, [3], 0),
        ("k8s://https://a", 1, [3], 0),
        ("local[2]", 1, [3], 1),
        ("local", 1, [3], 1),
    ],
)
def test_how_many_there_are(master: str, size: int, stages: list[int], count: int | None) -> None:
    assert executor_watch(session(master, size, stages))._count() == count


def test_what_an_executor_needs_is_said() -> None:
    watch = executor_watch(session("spark://a:7077", 1, [1], **{"spark.executor.cores": "2"}))
    needed = "spark://a:7077 needs a worker with spark.executor.memory=1g and spark.executor.cores=2 free"
    assert watch._needed == needed
    watch = executor_watch(session("spark://a:7077", 1, [1], **{"spark.executor.memory": "3g"}))
    assert watch._needed.endswith("with spark.executor.memory=3g free")


def test_a_jvm_that_has_ended_and_another_process_s_say_nothing() -> None:
    gone = session("spark://a:7077", 1, [1])
    gone.sparkContext.statusTracker = None
    assert executor_watch(gone)._count() is None
    assert executor_watch(SimpleNamespace()).trouble() == ""
