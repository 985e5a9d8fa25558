"""The graph of frames: what steps and sinks read is there, and what is written to it can be done with streams."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from leafcuttr_spark.pipelines import operations as op
from leafcuttr_spark.pipelines.errors import Fault
from leafcuttr_spark.pipelines.model import (
    FileOrigin,
    Pipeline,
    Sink,
    Source,
    Step,
    TopicOrigin,
    TopicTarget,
)
from leafcuttr_spark.pipelines.reading.variables import nearest
from leafcuttr_spark.pipelines.updates import output_mode, updates_before

_LISTED: Final = 20
_WINDOWED: Final = (op.Aggregate, op.Count, op.Reduce)
_OF_TABLES: Final = (
    *(op.Filter, op.Map, op.Select, op.Cast, op.Drop, op.Rename, op.FlatMap, op.Branch, op.Union, op.Sql),
    *(op.PythonFunction, op.Apply, op.Transform, op.Lookup),
)


@dataclass(frozen=True, slots=True)
class Frame:
    """What the graph says of a frame."""

    is_table: bool
    sources: frozenset[str]
    """The sources that its rows come from; of a lookup not the table."""
    is_global: bool = False
    """Whether it is a table that is whole on each executor."""


def frames_of(pipeline: Pipeline) -> dict[str, Frame]:
    """All frames by name, as far as they can be followed."""
    found = {
        name: Frame(source.table is not None, frozenset([name]), _is_global(source))
        for name, source in pipeline.sources.items()
    }
    for step in pipeline.steps:
        inputs = step.inputs[:1] if isinstance(step.operation, op.Lookup) else step.inputs
        known = [found[name] for name in inputs if name in found]
        frame = Frame(
            bool(known) and all(one.is_table for one in known),
            frozenset(source for one in known for source in one.sources),
            bool(known) and all(found[name].is_global for name in step.inputs if name in found),
        )
        for name in step.frames:
            found.setdefault(name, frame)
    return found


def _is_global(source: Source) -> bool:
    return source.table is not None and (source.table.is_global or isinstance(source.origin, FileOrigin))


def source_part(name: str) -> str:
    """How errors name a source."""
    return f"sources.{name}"


def sink_part(name: str) -> str:
    """How errors name a sink."""
    return f"sinks.{name}"


def check_graph(pipeline: Pipeline) -> Iterator[Fault]:
    """All that is wrong with the graph, and notes."""
    if not pipeline.sources:
        yield Fault(0, "sources", "there is no source")
    if not pipeline.sinks:
        yield Fault(0, "sinks", "there is no sink")
    yield from _twice(pipeline)
    yield from _unknown(pipeline)
    yield from _unread(pipeline)
    frames = frames_of(pipeline)
    for name, source in pipeline.sources.items():
        yield from (Fault(source.line, source_part(name), what) for what in _of_source(source, pipeline))
    for step in pipeline.steps:
        yield from (Fault(step.line, step.part, what) for what in _of_step(step, frames, pipeline))
        yield from (Fault(step.line, step.part, what, note=True) for what in _grows(step, frames, pipeline))
    yield from _of_sinks(pipeline)
    yield from _fed_back(pipeline)


# Names


def _twice(pipeline: Pipeline) -> Iterator[Fault]:
    """Frames are views of Spark in queries: it does not tell small letters from large ones."""
    seen = {name.lower(): f"the source {name}" for name in pipeline.sources}
    if len(seen) < len(pipeline.sources):
        yield Fault(0, "sources", "two sources have names that differ in small and large letters only")
    for step in pipeline.steps:
        for name in step.frames:
            if (before := seen.get(name.lower())) is not None:
                yield Fault(step.line, step.part, f"{before} has the name {name} already")
            seen.setdefault(name.lower(), step.part)


def _unknown(pipeline: Pipeline) -> Iterator[Fault]:
    known = dict.fromkeys(pipeline.sources)
    later = {name: step for step in pipeline.steps for name in step.frames}
    branches = {step.name: step for step in pipeline.steps if isinstance(step.operation, op.Branch)}
    for step in pipeline.steps:
        if step.from_ is None and op.takes_from(step.operation):
            yield Fault(step.line, step.part, _no_from(step, pipeline))
        for name in dict.fromkeys(step.inputs):
            if name not in known:
                yield Fault(step.line, step.part, _why_unknown(name, step, known, later, branches))
        known.update(dict.fromkeys(step.frames))
    for name, sink in pipeline.sinks.items():
        if not sink.from_:
            frames = listed(known)
            yield Fault(
                sink.line, sink_part(name), f"the key from is missing: which rows; there are {frames}"
            )
        elif sink.from_ not in known:
            yield Fault(sink.line, sink_part(name), _why_unknown(sink.from_, None, known, {}, branches))


def _no_from(step: Step, pipeline: Pipeline) -> str:
    if step.index == 0:
        streams = [name for name, source in pipeline.sources.items() if source.table is None]
        if not streams:
            return "the key from is missing: all sources are tables"
        return f"the key from is missing: which of the sources {listed(streams)}"
    frames = listed(pipeline.steps[step.index - 1].frames)
    return f"the key from is missing: the step before has the branches {frames}"


def listed(names: Iterable[str]) -> str:
    """Names in a line, the first of very many."""
    found = [*names]
    return ", ".join(found[:_LISTED]) + (f" and {len(found) - _LISTED} more" if len(found) > _LISTED else "")


def _why_unknown(
    name: str,
    step: Step | None,
    known: Mapping[str, None],
    later: Mapping[str, Step],
    branches: Mapping[str, Step],
) -> str:
    if (branch := branches.get(name)) is not None:
        return f"{name} is a step with branches; the frames are {listed(branch.frames)}"
    maker = later.get(name)
    if step is not None and maker is not None:
        if maker.index == step.index:
            return f"it reads its own result {name}: a circle"
        if _reads(maker, step, later):
            return f"it reads {name} of {maker.part}, which reads what it makes: a circle"
        return f"{name} is made by {maker.part}, which comes later: a step reads sources and steps before it"
    return f"there is no frame {name[:60]}{nearest(name, known)}; there are {listed(known)}"


def _reads(step: Step, other: Step, makers: Mapping[str, Step]) -> bool:
    """Whether a step reads what the other one makes, through any steps."""
    seen: set[int] = set()
    todo = [step]
    while todo:
        one = todo.pop()
        if one.index == other.index:
            return True
        if one.index not in seen:
            seen.add(one.index)
            todo += (makers[name] for name in one.inputs if name in makers)
    return False


def _unread(pipeline: Pipeline) -> Iterator[Fault]:
    read = {name for step in pipeline.steps for name in step.inputs}
    read |= {sink.from_ for sink in pipeline.sinks.values()}
    for name, source in pipeline.sources.items():
        if name not in read:
            yield Fault(source.line, source_part(name), "no step and no sink reads it", note=True)
    for step in pipeline.steps:
        if not read & set(step.frames):
            yield Fault(step.line, step.part, "no step and no sink reads it", note=True)


# What streams can do


def _of_source(source: Source, pipeline: Pipeline) -> Iterator[str]:
    origin = source.origin
    if isinstance(origin, FileOrigin):
        if source.table is None and origin.schema is None and origin.format != "text":
            yield "file: a stream of files needs schema: its columns with their types; or is it a table?"
        return
    yield from _unknown_cluster(origin.cluster, pipeline)
    for which, decoding in (("value", origin.value), ("key", origin.key)):
        if decoding.format in ("avro", "json-schema", "protobuf") and decoding.schema is None:
            if pipeline.registry is None:
                yield f"{which}: {decoding.format} needs schema, a file, or the registry of the pipeline"
            elif decoding.subject is None and len(origin.topics) != 1:
                yield f"{which}: subject is needed: with several topics it is not clear whose schema counts"
        if decoding.schema_id not in (None, "none") and pipeline.registry is None:
            yield f"{which}: records that are framed need the registry of the pipeline"


def _of_step(step: Step, frames: Mapping[str, Frame], pipeline: Pipeline) -> Iterator[str]:
    operation = step.operation
    left = frames.get(step.from_ or "")
    if isinstance(operation, _WINDOWED):
        yield from _of_aggregate(step, operation, left, pipeline)
    if isinstance(operation, op.Join):
        yield from _of_join(operation, left, frames, pipeline)
    elif isinstance(operation, op.Lookup):
        table = frames.get(operation.table)
        if table is not None and not table.is_table:
            yield f"{operation.table} is a stream: use join, or give its source the key table"
        if table is None or not table.is_global:
            yield from _of_rocksdb("lookups", pipeline)
    elif left is not None and left.is_table and not isinstance(operation, _OF_TABLES):
        yield f"{step.from_} is a table: {_word(operation)} is for streams"
    if isinstance(operation, op.Process):
        yield from _of_rocksdb("states of your own", pipeline)
    if isinstance(operation, op.Union):
        kinds = {frames[name].is_table for name in operation.frames if name in frames}
        if len(kinds) == 2:
            yield "tables and streams cannot be united"


def _of_aggregate(
    step: Step, operation: op.Aggregate | op.Count | op.Reduce, rows: Frame | None, pipeline: Pipeline
) -> Iterator[str]:
    word = _word(operation)
    if operation.window is None and operation.emit == "final":
        yield f"{word}.emit: final needs window: without one a result is never final"
    if operation.window is not None and rows is not None and (without := _without_watermark(rows, pipeline)):
        yield f"{word}.window: it needs a watermark, without which no window ends; {_named(without)} none"
    if (before := updates_before(pipeline, step)) is not None:
        yield f"the results of {before} are updates, which replace one another: give it emit: final, to aggregate them"
    if isinstance(operation.window, op.SlidingWindow):
        yield from _of_rocksdb(f"{word}.window: sliding windows", pipeline)


def _of_rocksdb(what: str, pipeline: Pipeline) -> Iterator[str]:
    if pipeline.state_store != "rocksdb":
        yield f"{what} keep their state in RocksDB alone: state: rocksdb"


def _of_join(
    operation: op.Join, left: Frame | None, frames: Mapping[str, Frame], pipeline: Pipeline
) -> Iterator[str]:
    right = frames.get(operation.with_)
    if operation.kind != "inner" and output_mode(pipeline) == "update":
        yield (
            f"join.kind: {operation.kind} cannot be in one pipeline with results that are given as updates: give its"
            " aggregates windows and emit: final, or make two pipelines of it"
        )
    if right is not None and right.is_table:
        yield f"{operation.with_} is a table: use lookup"
    elif left is not None and left.is_table:
        yield "its left side is a table; a join is of two streams"
    else:
        sources = [one.sources for one in (left, right) if one is not None]
        if without := _without_watermark(Frame(False, frozenset().union(*sources)), pipeline):
            yield (
                "a join of streams needs a watermark on both sides, without which its state grows for ever;"
                f" {_named(without)} none"
            )


def _grows(step: Step, frames: Mapping[str, Frame], pipeline: Pipeline) -> Iterator[str]:
    """What keeps state for ever: it may be meant."""
    operation = step.operation
    frame = frames.get(step.from_ or "")
    if frame is None or frame.is_table:
        return
    without = _without_watermark(frame, pipeline)
    if (
        isinstance(operation, _WINDOWED)
        and operation.window is not None
        and operation.emit == "update"
        and without
    ):
        yield f"without a watermark the state of its windows grows for ever; {_named(without)} none"
    if isinstance(operation, op.Deduplicate):
        if operation.within_ms is None:
            yield "without within it remembers each key for ever"
        elif without:
            yield f"without a watermark it remembers each key for ever; {_named(without)} none"


def _without_watermark(frame: Frame, pipeline: Pipeline) -> list[str]:
    return [name for name in sorted(frame.sources) if pipeline.sources[name].watermark_ms is None]


def _named(sources: list[str]) -> str:
    which = " and ".join(sources[:_LISTED])
    return f"the source {which} has" if len(sources) == 1 else f"the sources {which} have"


def _word(operation: op.StepOperation) -> str:
    words = {op.PythonFunction: "python", op.FlatMap: "flat-map"}
    return words.get(type(operation), type(operation).__name__.lower())


# Sinks


def _of_sinks(pipeline: Pipeline) -> Iterator[Fault]:
    topics = {name: sink for name, sink in pipeline.sinks.items() if isinstance(sink.target, TopicTarget)}
    for name, sink in topics.items():
        yield from (Fault(sink.line, sink_part(name), what) for what in _of_topic_sink(sink, pipeline))
    first = next(iter(topics.items()), None)
    if first is None:
        return
    for name, sink in topics.items():
        for what in ("cluster", "delivery"):
            ours, others = getattr(first[1].target, what), getattr(sink.target, what)
            if ours != others:
                why = f"{what}: {others}, while {first[0]} has {ours}: all topics of a pipeline are written together"
                yield Fault(sink.line, sink_part(name), why)
    dead = pipeline.dead_letters
    if dead is not None and dead.cluster != getattr(first[1].target, "cluster", dead.cluster):
        yield Fault(
            0,
            "dead-letters",
            "cluster has to be that of the sinks: all topics of a pipeline are written together",
        )


def _of_topic_sink(sink: Sink, pipeline: Pipeline) -> Iterator[str]:
    target = sink.target
    assert isinstance(target, TopicTarget)
    yield from _unknown_cluster(target.cluster, pipeline)
    for which, encoding in (("value", target.value), ("key", target.key)):
        if encoding is None or encoding.format not in ("avro", "json-schema", "protobuf"):
            continue
        if encoding.schema is None and pipeline.registry is None:
            yield f"{which}: {encoding.format} needs schema, a file, or the registry of the pipeline"
        if encoding.schema_id not in (None, "none") and pipeline.registry is None:
            yield f"{which}: to frame records needs the registry of the pipeline"


def _unknown_cluster(name: str, pipeline: Pipeline) -> Iterator[str]:
    if name not in pipeline.clusters:
        there = listed(pipeline.clusters)
        yield f"cluster: there is no cluster {name[:60]}{nearest(name, pipeline.clusters)}; there are {there}"


def _fed_back(pipeline: Pipeline) -> Iterator[Fault]:
    """A pipeline that reads what it writes never comes to an end; that may be meant."""
    read = {
        (source.origin.cluster, topic)
        for source in pipeline.sources.values()
        if isinstance(source.origin, TopicOrigin)
        for topic in source.origin.topics
    }
    for name, sink in pipeline.sinks.items():
        if isinstance(sink.target, TopicTarget) and (sink.target.cluster, sink.target.topic) in read:
            what = f"it writes {sink.target.topic}, which the pipeline reads: records may go round for ever"
            yield Fault(sink.line, sink_part(name), what, note=True)
    dead = pipeline.dead_letters
    if dead is not None and (dead.cluster, dead.topic) in read:
        yield Fault(0, "dead-letters", f"the pipeline reads the topic {dead.topic} too")
    if pipeline.late == "dead-letters" and dead is None:
        yield Fault(0, "late", "dead-letters needs the key dead-letters: their topic")
