"""What a batch waits for without an end, and nobody would know of: executors that do not come, which Spark says in its
log alone; a registry that does not answer, which tasks on other machines wait for."""

import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

LOGGER: Final = logging.getLogger("leafcuttr.spark")

LOOK_S: Final = 5.0
EXECUTOR_S: Final = 30.0
"""For an executor to start, before it is said."""
REGISTRY_S: Final = 10.0
"""For a batch to be done, before it is looked whether the registry answers."""
_LOCAL: Final = re.compile(r"local(?:\[|$)")
_MEMORY: Final = "spark.executor.memory"
_CORES: Final = "spark.executor.cores"
_SHORT: Final = {
    "schema.registry.http.connect.timeout.ms": "3000",
    "schema.registry.http.read.timeout.ms": "3000",
}


class Watch(Protocol):
    """For one thread, that asks again and again."""

    def trouble(self) -> str:
        """What keeps the batch, in one line; empty while nothing does."""
        ...


class ExecutorWatch:
    """`count` says how many executors there are; None where no task needs one. It may block for a moment, so that it is
    asked each `LOOK_S` at most. `needed` says what one needs."""

    def __init__(
        self, count: Callable[[], int | None], needed: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._count = count
        self._needed = needed
        self._clock = clock
        self._looked_s = -LOOK_S
        self._without_since: float | None = None

    def trouble(self) -> str:
        now = self._clock()
        if now - self._looked_s >= LOOK_S:
            self._looked_s = now
            if self._count() != 0:
                self._without_since = None
            elif self._without_since is None:
                self._without_since = now
        if self._without_since is None or now - self._without_since < EXECUTOR_S:
            return ""
        return f"the batch waits for an executor, and none has come for {EXECUTOR_S:g} s: {self._needed}"


class RegistryWatch:
    """`under_way` says which batch is; None between two. `ask` says what is wrong with the registry, within seconds."""

    def __init__(
        self,
        ask: Callable[[], str],
        under_way: Callable[[], int | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._under_way = under_way
        self._clock = clock
        self._looked_s = -LOOK_S
        self._batch: int | None = None
        self._since_s = 0.0
        self._said = ""

    def trouble(self) -> str:
        now = self._clock()
        if now - self._looked_s < LOOK_S:
            return self._said
        self._looked_s, batch, self._said = now, self._under_way(), ""
        if batch is None or batch != self._batch:
            self._batch, self._since_s = batch, now
        elif now - self._since_s >= REGISTRY_S and (line := self._ask()):
            self._said = f"the batch waits for the registry: {line}"
        return self._said


def first_trouble(watches: "tuple[Watch, ...]") -> str:
    """Of those that have some."""
    return next((line for watch in watches if (line := watch.trouble())), "")


# Executors


def executor_watch(spark: Any) -> ExecutorWatch:
    """Of this session; with Spark Connect, whose server has the executors, it never says anything."""
    if not hasattr(spark, "_jvm"):
        return ExecutorWatch(lambda: None, "")
    context = spark.sparkContext
    config = context.getConf()
    of = f"{_MEMORY}={config.get(_MEMORY, '1g')}"
    if (cores := config.get(_CORES)) is not None:
        of = f"{of} and {_CORES}={cores}"
    return ExecutorWatch(lambda: _count(context), f"{context.master} needs a worker with {of} free")


def _count(context: Any) -> int | None:
    try:
        if not context.statusTracker().getActiveStageIds():
            return None
        # The driver is one of them; on one machine it is the one that works.
        found: int = context._jsc.sc().getExecutorMemoryStatus().size()
    except Exception:
        # As of a JVM that has ended: the query says so.
        LOGGER.debug("how many executors there are", exc_info=True)
        return None
    return found if _LOCAL.match(context.master) else found - 1


# The registry


def registry_trouble(properties: Mapping[str, str]) -> str:
    """In one line, if none of its addresses answers. Blocks for seconds."""
    from leafcuttr_sdk.http_schemas import registry_settings
    from leafcuttr_sdk.http_schemas.answers import RETRIED
    from leafcuttr_sdk.http_schemas.exchange import Connections, NoAnswer

    settings = registry_settings({**properties, **_SHORT})
    connections = Connections(settings)
    said = ""
    try:
        for address in settings.addresses:
            try:
                answer = connections.request(address, "GET", "/schemas/types")
            except NoAnswer as error:
                said = str(error)
                continue
            if answer.status not in RETRIED:
                return ""
            said = f"the schema registry at {address} answers {answer.status}"
    finally:
        connections.close()
    return said
