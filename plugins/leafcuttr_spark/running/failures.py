"""What Spark, Python workers and clusters raise, as one line with the step it comes from. Only texts are read here, so
it is without PySpark."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, Final

from leafcuttr_spark.lines import CausedError, one_line, reads_in_other_places
from leafcuttr_spark.pipelines.errors import DeadLetterLimitError, Fault, PipelineError, PipelineRefusedError
from leafcuttr_spark.pipelines.model import Pipeline, TopicOrigin, TopicTarget

_LIMIT: Final = re.compile(r"\bDeadLetterLimitError: dead-letters: (.+? is not written)")


@contextmanager
def translated(pipeline: Pipeline, part: str | None = None, line: int = 0) -> Iterator[None]:
    """Whatever is raised becomes a PipelineError, of this part unless it says which one. One that is of a class below
    it stays of that class."""
    try:
        yield
    except PipelineError as error:
        if error.step is not None or part is None:
            _hide(error, pipeline)
            raise
        raise pipeline_error(error.message, pipeline, part, line, type(error)) from None
    except Exception as error:
        raise failure_of(error, pipeline, part, line) from error


def failure_of(
    error: BaseException, pipeline: Pipeline, part: str | None = None, line: int = 0
) -> PipelineError:
    """The line for what was raised."""
    if isinstance(error, PipelineError):
        _hide(error, pipeline)
        return error
    text = error.cause if isinstance(error, CausedError) and error.cause else str(error)
    if (limit := _LIMIT.search(text)) is not None:
        # Spark Connect has it as a text alone.
        return DeadLetterLimitError(pipeline.secrets.hide(limit[1]), "dead-letters")
    if part is None:
        part, line = part_of(text, pipeline)
    # Another try would end in the same way.
    class_ = PipelineRefusedError if reads_in_other_places(text) else PipelineError
    said = one_line(error, pipeline.secrets.hide)
    if part is not None:
        # What a function of records has raised comes with its step.
        said = said.removeprefix(f"{part}: ")
    return pipeline_error(said, pipeline, part, line, class_)


def _hide(error: PipelineError, pipeline: Pipeline) -> None:
    """The pipeline's secrets."""
    error.message = pipeline.secrets.hide(error.message)
    error.args = (Fault(error.line, error.step or "", error.message).text(error.file),)


def pipeline_error(
    message: str,
    pipeline: Pipeline,
    part: str | None,
    line: int = 0,
    class_: type[PipelineError] = PipelineError,
) -> PipelineError:
    """Without the pipeline's secrets."""
    file = str(pipeline.file) if pipeline.file else ""
    return class_(pipeline.secrets.hide(message), part, line, file)


# Which step it comes from


def part_of(text: str, pipeline: Pipeline) -> tuple[str | None, int]:
    """The step or sink whose expression, or whose module of Python, the text names, or the source or
    sink whose partition cannot be read or written; None where there is none."""
    fragments = _fragments(text)
    for step in pipeline.steps:
        if step.part in text:
            return step.part, step.line
    for step in pipeline.steps:
        texts = set(_texts(step.operation))
        if any(fragment in each for fragment in fragments for each in texts):
            return step.part, step.line
        if any(_names_module(text, each) for each in texts):
            return step.part, step.line
    for name, sink in pipeline.sinks.items():
        texts = set(_texts(sink.target))
        if any(fragment in each for fragment in fragments for each in texts):
            return f"sinks.{name}", sink.line
    for name, source in pipeline.sources.items():
        topics = source.origin.topics if isinstance(source.origin, TopicOrigin) else ()
        if any(_names_topic(text, topic) for topic in topics):
            return f"sources.{name}", source.line
    for name, sink in pipeline.sinks.items():
        if (
            isinstance(sink.target, TopicTarget)
            and sink.target.topic
            and _names_topic(text, sink.target.topic)
        ):
            return f"sinks.{name}", sink.line
    return None, 0


def _names_topic(text: str, topic: str) -> bool:
    """Whether it is about a partition of the topic, or a right that is missing on it."""
    name = re.escape(topic)
    return re.search(rf"(?<![\w.-]){name}-\d+: |may not [A-Z_]+ topic {name} \(", text) is not None


def _fragments(text: str) -> list[str]:
    """What Spark quotes of an expression below `== SQL (line 1, position 1) ==`."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines[:-1]):
        if line.strip().startswith("== SQL"):
            quoted = lines[number + 1].strip()
            marks = lines[number + 2] if number + 2 < len(lines) else ""
            begin, size = marks.find("^"), marks.count("^")
            found.append(lines[number + 1][begin : begin + size] if begin >= 0 and size else quoted)
    return [each for each in found if each]


def _names_module(text: str, path: str) -> bool:
    """Whether a traceback goes through the module of `package.module:name`."""
    module, colon, _ = path.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z_][\w.]*", module):
        return False
    return f'/{module.replace(".", "/")}.py"' in text or f'/{module.replace(".", "/")}/__init__.py"' in text


def _texts(value: Any) -> Iterator[str]:
    """All texts in an operation or a target."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _texts(name)
            yield from _texts(each)
    elif isinstance(value, (tuple, list, frozenset)):
        for each in value:
            yield from _texts(each)
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from _texts(getattr(value, each.name))
    elif callable(value):
        # The file of a function in Python.
        code = getattr(value, "__code__", None)
        if code is not None:
            yield f"{getattr(value, '__module__', '')}:{getattr(value, '__name__', '')}"
