"""A batch that waits for executors or a registry says so once they are late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from leafcuttr_spark.running.waiting import (
    EXECUTOR_S,
    LOOK_S,
    REGISTRY_S,
    ExecutorWatch,
    RegistryWatch,
    executor_watch,
    first_trouble,
    registry_trouble,
)
from support.http_registry import scripted_registry
from support.waiting import free_port


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
    assert [found.after(0), found.after(EXECUTOR_S - 0.1), found.after(0.1)] == ["", "", line]
    found.count = 1
    assert found.after(LOOK_S - 1) == line, "it is not asked so often"
    assert found.after(1) == ""
    found.count = 0
    assert [found.after(LOOK_S), found.after(EXECUTOR_S - 0.1), found.after(0.1)] == ["", "", line]


def test_where_nothing_waits_none_are_missed() -> None:
    found = Watched()
    assert found.after(0) == ""
    found.count = None
    assert found.after(EXECUTOR_S - 1) == ""
    found.count = 0
    assert [found.after(LOOK_S), found.after(EXECUTOR_S - 1), found.after(1)] == [
        "",
        "",
        found.watch.trouble(),
    ]
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


def test_a_registry_is_asked_once_a_batch_takes_long() -> None:
    now, batch, said = [100.0], [3], ["it is away"]
    asked: list[float] = []

    def ask() -> str:
        asked.append(now[0])
        return said[0]

    under_way: list[int | None] = [*batch]
    watch = RegistryWatch(ask, lambda: under_way[0], lambda: now[0])

    def after(seconds: float) -> str:
        now[0] += seconds
        return watch.trouble()

    assert [after(0), after(LOOK_S), asked] == ["", "", []]
    line = "the batch waits for the registry: it is away"
    assert after(REGISTRY_S - LOOK_S) == line
    assert (after(LOOK_S - 1), len(asked)) == (line, 1), "it is not asked so often"
    said[0] = ""
    assert (after(1), len(asked)) == ("", 2)
    said[0] = "it is away again"
    assert after(LOOK_S).endswith("away again")
    under_way[0] = 4
    assert [after(LOOK_S), after(LOOK_S), len(asked)] == ["", "", 3], "another batch has its own time"
    under_way[0] = None
    assert [after(each) for each in (LOOK_S, LOOK_S, REGISTRY_S)] == ["", "", ""]
    under_way[0] = 4
    assert [after(LOOK_S), after(LOOK_S), len(asked)] == ["", "", 3]


def test_which_registries_answer() -> None:
    status = [200]
    away = f"http://127.0.0.1:{free_port()}"
    with scripted_registry(lambda asked: (status[0], ["AVRO"])) as scripted:
        both = {"schema.registry.url": f"{away},{scripted.url}"}
        for number in (200, 404, 403):
            status[0] = number
            assert registry_trouble(both) == ""
        status[0] = 503
        assert registry_trouble(both) == f"the schema registry at {scripted.url} answers 503"
    found = registry_trouble({"schema.registry.url": away})
    assert found.startswith(f"no schema registry answers at {away}: ")


class Says:
    def __init__(self, line: str) -> None:
        self.line = line

    def trouble(self) -> str:
        return self.line


def test_the_first_one_counts() -> None:
    quiet, one, other = (Says(each) for each in ("", "one", "other"))
    assert first_trouble((quiet, one, other)) == "one"
    assert first_trouble((quiet,)) == first_trouble(()) == ""
