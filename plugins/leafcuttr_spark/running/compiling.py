# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false
"""The steps of a pipeline, in order, to frames of Spark: what the compiler of an operation gets and gives, and how the
frames come together.

Only what leads to a sink is compiled. A frame with several consumers is shared (`sharing`), and its rows with errors go
to the first consumer alone, so that each makes one dead letter.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from leafcuttr_spark.pipelines.errors import PipelineRefusedError
from leafcuttr_spark.pipelines.model import Pipeline, Source, Step
from leafcuttr_spark.running.failures import translated
from leafcuttr_spark.running.rows import can_fail, good_rows, is_good
from leafcuttr_spark.running.sharing import shared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frames: TypeAlias = "Mapping[str, DataFrame]"
Compiled: TypeAlias = "DataFrame | Frames"
Compiler: TypeAlias = "Callable[[Any, Sequence[DataFrame], StepContext], Compiled]"
"""The operation, the frames in the order of `Step.inputs`, hidden columns included, and the context; gives the step's
frame, of a branch its frames by their names. What it raises becomes a PipelineError of the step."""


@dataclass
class Compilation:
    """What compilers of one pipeline have in common."""

    pipeline: Pipeline
    spark: "SparkSession"
    catches: bool
    """Whether rows that fail become dead letters, and do not stop the pipeline."""
    asides: "list[DataFrame]" = field(default_factory=list)
    """Rows with ERROR, and RECORD where they have one, that no sink gets in another way."""
    kept: "list[DataFrame]" = field(default_factory=list)
    """Frames that are shared."""

    def share(self, frame: "DataFrame") -> "DataFrame":
        if not frame.isStreaming or any(frame is each for each in self.kept):
            return frame
        found = shared(frame, int(self.spark.conf.get("spark.sql.shuffle.partitions") or 200))
        self.kept.append(found)
        return found


@dataclass(frozen=True)
class StepContext:
    """What the compiler of one step may use."""

    step: Step
    common: Compilation
    branches: frozenset[str]
    """The step's frames that lead to a sink."""

    @property
    def part(self) -> str:
        """How lines and dead letters name the step."""
        return self.step.part

    @property
    def pipeline(self) -> Pipeline:
        return self.common.pipeline

    @property
    def spark(self) -> "SparkSession":
        return self.common.spark

    @property
    def catches(self) -> bool:
        """Whether rows that fail become dead letters."""
        return self.common.catches

    def shared(self, frame: "DataFrame") -> "DataFrame":
        """The same rows, for more than one use within the step."""
        return self.common.share(frame)

    def good(self, frame: "DataFrame") -> "DataFrame":
        """The good rows, without ERROR; the others become dead letters. For what cannot let rows with an error pass:
        state, SQL, functions of whole frames."""
        if not can_fail(frame):
            return frame
        both = self.shared(frame)
        self.aside(both.where(~is_good()))
        return good_rows(both)

    def aside(self, frame: "DataFrame") -> None:
        """More rows for the dead letters, with ERROR. Without dead letters they are dropped."""
        if self.common.catches:
            self.common.asides.append(frame)

    def source(self, name: str) -> Source | None:
        """The source of this frame; None for the frame of a step."""
        return self.pipeline.sources.get(name)


def live_frames(pipeline: Pipeline) -> set[str]:
    """The frames that lead to a sink."""
    live = {sink.from_ for sink in pipeline.sinks.values()}
    for step in reversed(pipeline.steps):
        if live.intersection(step.frames):
            live.update(step.inputs)
    return live


def compile_steps(
    common: Compilation,
    sources: "Mapping[str, Callable[[], DataFrame]]",
    compilers: Mapping[type[Any], Compiler],
) -> "dict[str, DataFrame]":
    """The frames that sinks take, by their names. A source is made when it is first needed. Raises PipelineError."""
    live = live_frames(common.pipeline)
    steps = [step for step in common.pipeline.steps if live.intersection(step.frames)]
    frames = _Frames(common, _uses(common.pipeline, steps))
    for name, make in sources.items():
        if name in live:
            frames.add(name, make())
    for step in steps:
        context = StepContext(step, common, frozenset(live.intersection(step.frames)))
        with translated(common.pipeline, step.part, step.line):
            inputs = [frames.take(name) for name in step.inputs]
            compiler = compilers.get(type(step.operation))
            if compiler is None:
                raise PipelineRefusedError(
                    f"there is no operation {type(step.operation).__name__}", step.part, step.line
                )
            made = compiler(step.operation, inputs, context)
            found = made if isinstance(made, Mapping) else {step.name: made}
            for name in context.branches:
                frames.add(name, found[name])
    return {name: frames.take(name) for name in dict.fromkeys(_sunk(common.pipeline))}


def _sunk(pipeline: Pipeline) -> Iterable[str]:
    return (sink.from_ for sink in pipeline.sinks.values())


def _uses(pipeline: Pipeline, steps: Sequence[Step]) -> Counter[str]:
    """How many consumers each frame has: all of its sinks are one, as they are written together."""
    uses = Counter(name for step in steps for name in step.inputs)
    uses.update(set(_sunk(pipeline)))
    return uses


class _Frames:
    """The frames by their names, for each of their consumers."""

    def __init__(self, common: Compilation, uses: Counter[str]) -> None:
        self._common = common
        self._uses = uses
        self._frames: dict[str, DataFrame] = {}
        self._taken: set[str] = set()

    def add(self, name: str, frame: "DataFrame") -> None:
        self._frames[name] = self._common.share(frame) if self._uses[name] > 1 else frame

    def take(self, name: str) -> "DataFrame":
        """Raises PipelineError."""
        if name not in self._frames:
            raise PipelineRefusedError(f"there is no frame {name}; there are {', '.join(self._frames)}")
        frame = self._frames[name]
        if name in self._taken:
            return good_rows(frame)
        self._taken.add(name)
        return frame
