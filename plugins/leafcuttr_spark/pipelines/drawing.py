"""A pipeline as a graph that people and programs read: text, Mermaid, JSON. No values of properties are in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from leafcuttr_spark.pipelines import operations as op
from leafcuttr_spark.pipelines.checking.columns import columns_of
from leafcuttr_spark.pipelines.checking.expressions import Columns
from leafcuttr_spark.pipelines.model import (
    Encoding,
    FileOrigin,
    FileTarget,
    Pipeline,
    PythonTarget,
    Sink,
    Source,
    Step,
    TopicTarget,
)

_LONGEST: Final = 100


@dataclass(frozen=True, slots=True)
class Box:
    """A source, a step or a sink."""

    kind: str
    """`source`, `table`, `step` or `sink`."""
    name: str
    what: str
    """In one line."""
    inputs: tuple[str, ...] = ()
    columns: Mapping[str, Columns] = field(default_factory=dict)
    """By frame: one, or those of the branches."""


def graph_of(pipeline: Pipeline, known: Mapping[str, Columns] | None = None) -> list[Box]:
    """In order: sources, steps, sinks, and the dead letters. `known` are the columns of all frames, where they have
    been worked out."""
    if known is None:
        known = columns_of(pipeline)
    hide = pipeline.secrets.hide
    boxes = [
        Box("source" if one.table is None else "table", name, hide(_source(one)), (), {name: known[name]})
        for name, one in pipeline.sources.items()
    ]
    boxes += (
        Box("step", one.name, hide(_step(one)), one.inputs, {name: known[name] for name in one.frames})
        for one in pipeline.steps
    )
    boxes += (Box("sink", name, hide(_sink(one)), (one.from_,)) for name, one in pipeline.sinks.items())
    if pipeline.dead_letters is not None:
        boxes.append(Box("sink", "dead letters", hide(f"topic {pipeline.dead_letters.topic}")))
    return boxes


def as_text(boxes: list[Box]) -> Iterator[str]:
    """Lines: a box, what it reads, its columns."""
    for box in boxes:
        yield f"{box.kind} {box.name}: {box.what}"
        if box.inputs:
            yield f"    <- {', '.join(box.inputs)}"
        for frame, columns in box.columns.items():
            yield f"    {f'{frame} ' if len(box.columns) > 1 else ''}({columns.text()})"


def as_mermaid(boxes: list[Box]) -> Iterator[str]:
    """A flow chart. Frames are nodes; of a step with branches each edge has the name of the branch."""
    makers = {frame: index for index, box in enumerate(boxes) for frame in box.columns}
    shapes = {"source": ("([", "])"), "table": ("[(", ")]"), "step": ("[", "]"), "sink": ("[[", "]]")}
    yield "flowchart LR"
    for index, box in enumerate(boxes):
        left, right = shapes[box.kind]
        yield f'    n{index}{left}"{_escaped(box.name)}<br/>{_escaped(box.what)}"{right}'
    for index, box in enumerate(boxes):
        for name in box.inputs:
            maker = makers[name]
            branch = f"|{_escaped(name)}|" if len(boxes[maker].columns) > 1 else ""
            yield f"    n{maker} -->{branch} n{index}"


def _escaped(text: str) -> str:
    for char, code in (
        ("&", "#38;"),
        ('"', "#quot;"),
        ("<", "#lt;"),
        (">", "#gt;"),
        ("|", "#124;"),
        ("`", "#96;"),
    ):
        text = text.replace(char, code)
    return text


def as_json(boxes: list[Box]) -> list[dict[str, Any]]:
    """For programs. A type that is not known is null; `open`: there may be more columns."""
    return [
        {
            "kind": box.kind,
            "name": box.name,
            "what": box.what,
            "inputs": list(box.inputs),
            "frames": {
                frame: {
                    "columns": [
                        {"name": name, "type": type_.text() if type_ else None} for name, type_ in columns
                    ],
                    "open": columns.is_open,
                }
                for frame, columns in box.columns.items()
            },
        }
        for box in boxes
    ]


# What is in a box


def _source(source: Source) -> str:
    origin = source.origin
    if isinstance(origin, FileOrigin):
        text = f"{origin.format} {origin.path}"
    else:
        where = f"topics like {origin.pattern}" if origin.pattern else f"topic {', '.join(origin.topics)}"
        text = f"{where}, value {origin.value.format}, key {origin.key.format}"
    if source.table is not None:
        text += f", key ({', '.join(source.table.key)})"
    if source.watermark_ms is not None:
        text += f", watermark {_duration(source.watermark_ms)}"
    return text


def _sink(sink: Sink) -> str:
    match sink.target:
        case TopicTarget() as target:
            where = target.topic or f"of column {target.topic_column}"
            key = f", key {_encoding(target.key)}" if target.key else ""
            return f"topic {where}, value {_encoding(target.value)}{key}, {target.delivery}"
        case FileTarget(path, format):
            return f"{format} {path}"
        case PythonTarget(class_):
            return f"python {class_}"


def _encoding(encoding: Encoding) -> str:
    what = encoding.expression or (f"({', '.join(encoding.columns)})" if encoding.columns else "")
    return f"{encoding.format} {what}".strip()


def _step(step: Step) -> str:
    text = " ".join(_operation(step.operation).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _operation(operation: op.StepOperation) -> str:
    match operation:
        case op.Filter(condition):
            return f"filter {condition}"
        case op.Map(columns):
            return f"map {_pairs(columns)}"
        case op.Select(columns):
            return f"select {', '.join(columns)}"
        case op.Cast(types):
            return f"cast {_pairs(types)}"
        case op.Drop(columns):
            return f"drop {', '.join(columns)}"
        case op.Rename(names):
            return f"rename {_pairs(names)}"
        case op.FlatMap(explode, as_):
            return f"flat-map {explode} as {as_}"
        case op.Branch(conditions, default):
            return f"branch {_pairs(conditions)}{f', default {default}' if default else ''}"
        case op.Union(frames):
            return f"union {', '.join(frames)}"
        case op.Sql(query):
            return f"sql {query}"
        case op.PythonFunction(function):
            return f"python {function}"
        case op.Apply():
            return "apply, a function"
        case op.Transform(type_):
            return f"transform {type_}"
        case op.Aggregate(by, columns):
            return f"aggregate by ({', '.join(by)}){_window(operation)}: {_pairs(columns)}"
        case op.Count(by):
            return f"count by ({', '.join(by)}){_window(operation)}"
        case op.Reduce(by, with_):
            return f"reduce by ({', '.join(by)}){_window(operation)}: {with_}"
        case op.Deduplicate(by, within):
            return f"deduplicate by ({', '.join(by)}){f' within {_duration(within)}' if within else ''}"
        case op.Join(other, on, within, kind):
            return f"{kind} join {other} on {_pairs(on)} within {_duration(within)}"
        case op.Lookup(table, on, kind):
            return f"{kind} lookup {table} on {_pairs(on)}"
        case op.Process(class_, by):
            return f"process {class_} by ({', '.join(by)})"


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(name if name == value else f"{name} = {value}" for name, value in values.items())


def _window(operation: op.Aggregate | op.Count | op.Reduce) -> str:
    match operation.window:
        case None:
            return ""
        case op.TumblingWindow(size):
            text = f"tumbling {_duration(size)}"
        case op.HoppingWindow(size, advance):
            text = f"hopping {_duration(size)} every {_duration(advance)}"
        case op.SlidingWindow(difference):
            text = f"sliding {_duration(difference)}"
        case op.SessionWindow(gap):
            text = f"session {_duration(gap)}"
    return f", {text}, {operation.emit}"


def _duration(ms: int) -> str:
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if ms and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"
