"""From a file to a Pipeline: the YAML, its variables, its parts by their tables; all that is wrong with it at once."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from leafcuttr_spark.pipelines import model
from leafcuttr_spark.pipelines.errors import Fault, PipelineFaultsError
from leafcuttr_spark.pipelines.operations import Sql
from leafcuttr_spark.pipelines.reading.kinds import At, Faults, TooManyFaultsError, WrongValueError
from leafcuttr_spark.pipelines.reading.pipeline_parts import PIPELINE, unknown_variable
from leafcuttr_spark.pipelines.reading.variables import Variables
from leafcuttr_spark.pipelines.reading.yaml_nodes import (
    MOST_BYTES,
    Entries,
    Node,
    Scalar,
    YamlError,
    read_yaml,
)

_LOCALHOST: Final = {"bootstrap.servers": "localhost:9092"}


def read_pipeline(
    path: str | Path, variables: Mapping[str, str] | None = None, *, needs_secrets: bool = True
) -> tuple[model.Pipeline, list[Fault]]:
    """The pipeline of a file, and notes on it. `variables` win over those of the file. Where secrets are not needed,
    one that is not there is noted. The graph is not checked. Raises PipelineFaultsError with all faults of the file."""
    file = Path(path)
    try:
        with file.open("rb") as opened:
            source = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise PipelineFaultsError(str(path), [Fault(0, "", f"cannot be read: {error.strerror}")]) from None
    if len(source) > MOST_BYTES:
        too_large = f"the file is larger than {MOST_BYTES // 1024} KiB, which is the most that is read"
        raise PipelineFaultsError(str(path), [Fault(0, "", too_large)])
    return parse_pipeline(source, file, variables, needs_secrets=needs_secrets)


def parse_pipeline(
    source: bytes,
    file: Path,
    variables: Mapping[str, str] | None = None,
    *,
    needs_secrets: bool = True,
) -> tuple[model.Pipeline, list[Fault]]:
    """The same of the text; `file` is where it stands. Raises PipelineFaultsError."""
    try:
        root = read_yaml(source)
    except YamlError as error:
        raise PipelineFaultsError(str(file), [Fault(error.line, "", error.what)]) from None
    faults = Faults(_variables(root, variables or {}, file, needs_secrets), file.parent)
    at = At(faults)
    pipeline = None
    try:
        if isinstance(root, Entries):
            _check_given(root, variables or {}, at)
        values = PIPELINE.values(root, at)
        if values is not None:
            pipeline = _made(values, root, file, at)
    except TooManyFaultsError:
        faults.found.append(Fault(1 << 31, "", "and more, which are not shown"))
    except WrongValueError as error:
        faults.found.append(Fault(error.line, "", error.what))
    if faults.found or pipeline is None:
        raise PipelineFaultsError(str(file), _in_order(faults.found))
    secrets = model.Secrets(frozenset(faults.variables.secrets))
    notes = [Fault(0, "", f"{why}, which it needs to run", note=True) for why in faults.variables.missing]
    return replace(pipeline, secrets=secrets, places=faults.places), notes


def _in_order(faults: list[Fault]) -> list[Fault]:
    """By line, each once: an alias is read at each place where it stands."""
    found = sorted(dict.fromkeys(faults), key=lambda fault: fault.line)
    return [replace(fault, line=0) if fault.line == 1 << 31 else fault for fault in found]


def _variables(root: Node, given: Mapping[str, str], file: Path, needs_secrets: bool) -> Variables:
    declared = root.get("variables") if isinstance(root, Entries) else None
    texts: dict[str, str | None] = {}
    if isinstance(declared, Entries):
        for key, value in declared.entries:
            if isinstance(value, Scalar):
                texts[key.text] = None if value.is_null else value.text
    return Variables(texts, given, file.parent, needs_secrets=needs_secrets)


def _check_given(root: Entries, given: Mapping[str, str], at: At) -> None:
    node = root.get("variables")
    declared = {key.text: None for key, _ in node.entries} if isinstance(node, Entries) else {}
    for name in given:
        if name not in declared:
            at.wrong(0, unknown_variable(name, declared))


def _made(values: Mapping[str, Any], root: Node, file: Path, at: At) -> model.Pipeline:
    clusters: Mapping[str, Mapping[str, str]] = values.get("clusters", {})
    if "cluster" in values:
        if clusters:
            at.wrong(_line(root, "clusters"), "cluster and clusters exclude each other")
        clusters = {model.MAIN: {**_LOCALHOST, **values["cluster"]}}
    pipeline = model.Pipeline(
        name=values["pipeline"],
        sources=values["sources"],
        steps=values.get("steps", ()),
        sinks=values["sinks"],
        clusters=clusters or {model.MAIN: _LOCALHOST},
        registry=values.get("registry"),
        session=values.get("session", model.SessionSettings()),
        checkpoint=values.get("checkpoint"),
        trigger=values.get("trigger", model.Trigger()),
        records_per_batch=values.get("limits") or 100_000,
        idle_ms=values.get("idle", 30_000),
        state_store=values.get("state", "rocksdb"),
        dead_letters=values.get("dead-letters"),
        late=values.get("late", "count"),
        file=file,
    )
    return _with_ends(pipeline)


def _line(root: Node, key: str) -> int:
    entries = root.entries if isinstance(root, Entries) else []
    return next((name.line for name, _ in entries if name.text == key), 0)


def _with_ends(pipeline: model.Pipeline) -> model.Pipeline:
    """Sinks without `from` take the last step; queries get the frames that they name."""
    from leafcuttr_spark.pipelines.checking.queries import frames_of

    steps = [
        replace(step, operation=replace(step.operation, frames=frames_of(step.operation.query)))
        if isinstance(step.operation, Sql)
        else step
        for step in pipeline.steps
    ]
    if steps:
        last = steps[-1].frames[0] if len(steps[-1].frames) == 1 else ""
    else:
        last = next(iter(pipeline.sources)) if len(pipeline.sources) == 1 else ""
    sinks = {name: sink if sink.from_ else replace(sink, from_=last) for name, sink in pipeline.sinks.items()}
    return replace(pipeline, steps=steps, sinks=sinks)
