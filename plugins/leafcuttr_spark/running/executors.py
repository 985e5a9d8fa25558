"""Whether a batch waits for executors that do not come. Spark waits for them without an end, and says so in its log
alone."""

import logging
import re
import time
from collections.abc import Callable
from typing import Any, Final

LOGGER: Final = logging.getLogger("leafcuttr.spark")

WAIT_S: Final = 30.0
"""For an executor to start, before it is said."""
LOOK_S: Final = 5.0
_LOCAL: Final = re.compile(r"local(?:\[|$)")
_MEMORY: Final = "spark.executor.memory"
_CORES: Final = "spark.executor.cores"


class ExecutorWatch:
    """For one thread. `count` says how many executors there are; None where no task needs one. It may block for a
    moment, so that it is asked each `LOOK_S` at most. `needed` says what one needs."""

    def __init__(
        self, count: Callable[[], int | None], needed: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._count = count
        self._needed = needed
        self._clock = clock
        self._looked_s = -LOOK_S
        self._without_since: float | None = None

    def trouble(self) -> str:
        """What keeps the batch, in one line; empty while nothing does."""
        now = self._clock()
        if now - self._looked_s >= LOOK_S:
            self._looked_s = now
            if self._count() != 0:
                self._without_since = None
            elif self._without_since is None:
                self._without_since = now
        if self._without_since is None or now - self._without_since < WAIT_S:
            return ""
        return f"the batch waits for an executor, and none has come for {WAIT_S:g} s: {self._needed}"


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
