"""What a broker knows of its pipelines: the service puts it here, health, metrics and the admin port find it here."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from leafcuttr_spark.operating.status import RunState, RunStatus, before

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.children import Child

REFUSED: Final = "refused"
RESTARTING: Final = "restarting"
STATES: Final = (*(state.value for state in RunState), REFUSED, RESTARTING)


class Totals(NamedTuple):
    """Counts of all runs since the broker began with the pipeline."""

    batches: int = 0
    rows: int = 0
    late_rows: int = 0
    dead_letters: int = 0


_NOTHING: Final = Totals()


@dataclass(slots=True)
class PipelineReport:
    """One pipeline. All of it is of the loop's thread."""

    name: str
    path: Path
    child: "Child | None" = None
    refused: str = ""
    """Why it is not run at all, in one line."""
    status: RunStatus | None = None
    """As its run says."""
    is_over: bool = False
    """Its program has ended, and is not started again."""
    _before: Totals = _NOTHING

    def told(self, status: RunStatus | None) -> None:
        """What the file of its run has now."""
        if status is None:
            return
        if self.status is not None and self.status.run != status.run:
            self._before = self.totals
        self.status = status

    @property
    def totals(self) -> Totals:
        now = self.status
        if now is None:
            return self._before
        counts = Totals(now.batches, now.rows, now.late_rows, now.dead_letters)
        return Totals(*map(sum, zip(self._before, counts, strict=True)))

    @property
    def state(self) -> str:
        """One of STATES."""
        if self.refused:
            return REFUSED
        said = self._said
        if self.child is None or self.child.up:
            return RunState.STARTING.value if said is None else said.state.value
        if not self.is_over:
            # Without trouble it has not been up yet, or has ended and is being cleared away.
            return RESTARTING if self.child.trouble else RunState.STARTING.value
        if self.child.trouble:
            return RunState.FAILED.value
        return (
            RunState.STOPPED.value
            if said is not None and said.state is RunState.STOPPED
            else RunState.FINISHED.value
        )

    @property
    def _said(self) -> RunStatus | None:
        """The status, if it is of the run that is there now: one that is over is of the one before."""
        is_before = (
            self.status is not None and self.status.state.is_over and self.child is not None and self.child.up
        )
        return None if is_before else self.status

    @property
    def trouble(self) -> str:
        """What keeps it from going on, in one line; empty while nothing does."""
        if self.refused:
            return self.refused
        if self.child is None or self.child.up:
            if self._said is not None:
                return self._said.all_trouble
            # One that has just been started again has said nothing yet.
            return before(self.status.failure) if self.status is not None else ""
        said = self._said.trouble if self._said is not None else ""
        return self.child.trouble and (said or self.child.trouble)

    @property
    def restarts(self) -> int:
        return 0 if self.child is None else self.child.restarts


@dataclass(slots=True)
class RunningPipelines:
    """All of a broker's."""

    reports: dict[str, PipelineReport] = field(default_factory=dict[str, PipelineReport])
    trouble: str = ""
    """What is wrong with the folder, in one line."""

    def all(self) -> Iterable[PipelineReport]:
        """By their names."""
        return tuple(self.reports[name] for name in sorted(self.reports))


_RUNNING: "WeakKeyDictionary[Broker, RunningPipelines]" = WeakKeyDictionary()


def running_of(broker: "Broker") -> RunningPipelines:
    """Of this broker; without pipelines until its service has found some."""
    found = _RUNNING.get(broker)
    if found is None:
        found = _RUNNING[broker] = RunningPipelines()
    return found
