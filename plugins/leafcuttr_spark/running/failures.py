"""What Spark, Python workers and clusters raise, as one line with the step it comes from.

A failure reaches the driver wrapped many times: a traceback of Python within the message of a Java exception within the
stack trace of another one. The line is that of the innermost one. Only texts are read here, so it is without PySpark.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, Final

from leafcuttr_spark.pipelines.errors import Fault, PipelineError, PipelineRefusedError
from leafcuttr_spark.pipelines.model import Pipeline, TopicOrigin

_LONGEST: Final = 500
_TRACEBACK: Final = "Traceback (most recent call last):"
_RAISED: Final = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?([A-Za-z_]\w*): (.*)$")
"""The last line of a traceback."""
_CONDITION: Final = re.compile(r"^\[([A-Z][A-Z0-9_.]*)\] ")
_STATE: Final = re.compile(r" SQLSTATE: [0-9A-Z]{5}.*$")
_FRAGMENT: Final = re.compile(r"^== .* ==$")
_OURS: Final = (
    "OptionError",
    "PluginError",
    "PlacingError",
    "ReadError",
    "DataLossError",
    "SecondAttemptError",
    "StaleCheckpointError",
    "PipelineError",
    "PipelineRefusedError",
    "PipelineStopError",
)
"""Their messages say all that there is to say."""
_OTHER_SOURCES: Final = re.compile(
    r"There are \[(\d+)\] sources in the checkpoint offsets and now there are \[(\d+)\]"
)
_AWAITED: Final = re.compile(r"Exception thrown in awaitResult:\s*$")
_MOST_CAUSES: Final = 10
_USER_RAISED: Final = "[USER_RAISED_EXCEPTION] "


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
    text = str(error)
    if part is None:
        part, line = part_of(text, pipeline)
    # Another try would end in the same way.
    class_ = PipelineRefusedError if _OTHER_SOURCES.search(text) else PipelineError
    return pipeline_error(one_line(error, pipeline.secrets.hide), pipeline, part, line, class_)


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


def one_line(error: BaseException, hide: Callable[[str], str] = str) -> str:
    """The innermost message. `hide` takes secrets out before it is shortened, which would leave parts of them."""
    said = _said(error, hide)
    for _ in range(_MOST_CAUSES):
        # PySpark keeps the cause of a Java exception here.
        cause = getattr(error, "_cause", None) or error.__cause__
        if cause is None or not _AWAITED.search(said):
            break
        error = cause
        said = _said(error, hide)
    return said


def _said(error: BaseException, hide: Callable[[str], str]) -> str:
    text = hide(str(error)) or type(error).__name__
    if (counts := _OTHER_SOURCES.search(text)) is not None:
        return (
            f"its query reads in {counts[2]} places, and its checkpoint is of one with {counts[1]}: dead letters, or a"
            " sink or a step that uses a frame once more, are places more. Undo the edit, or begin anew: leafcuttr"
            " spark replay FILE --from earliest"
        )
    found = _from_traceback(text)
    if found is None:
        found = text
        if type(error).__module__ == "builtins" and not isinstance(error, (OSError, RuntimeError)):
            found = f"{type(error).__name__}: {text}"
    return _shortened(_cleaned(found))


def _from_traceback(text: str) -> str | None:
    """What the last traceback of Python in the text ends with."""
    begin = text.rfind(_TRACEBACK)
    if begin < 0:
        return None
    for number, line in enumerate(lines := text[begin:].splitlines()[1:]):
        # Lines of the stack are indented; what was raised is the first one that is not.
        if line.startswith((" ", "\t")) or not line.strip():
            continue
        raised = _RAISED.match(line)
        if raised is None:
            return line
        name, message = raised.groups()
        more = " ".join(each.strip() for each in _until_stack(lines[number + 1 :]))
        whole = f"{message} {more}".strip()
        return (
            whole
            if name in _OURS or name.endswith("Exception") or not name.endswith("Error")
            else f"{name}: {whole}"
        )
    return None


def _until_stack(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if not line.strip() or line.lstrip().startswith(("at ", "File ", "JVM stacktrace", "Traceback")):
            return
        yield line


def _cleaned(text: str) -> str:
    """Without the stack of Java, the names of conditions and the codes of SQL."""
    lines = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith(
            ("at ", "JVM stacktrace", "Driver stacktrace", "Caused by")
        ) or _FRAGMENT.match(stripped):
            break
        if stripped:
            lines.append(stripped)
    whole = " ".join(lines)
    if _USER_RAISED in whole:
        whole = whole[whole.rfind(_USER_RAISED) + len(_USER_RAISED) :]
    # A failed stage says it after where it failed: the innermost condition is the one that counts.
    places = [found.start() for found in re.finditer(r"\[[A-Z][A-Z0-9_.]*\] ", whole)]
    if places:
        whole = whole[places[-1] :]
    whole = _CONDITION.sub("", whole)
    return _STATE.sub("", whole).strip()


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


# Which step it comes from


def part_of(text: str, pipeline: Pipeline) -> tuple[str | None, int]:
    """The step or sink whose expression, or whose module of Python, the text names, or the source whose partition
    cannot be read; None where there is none."""
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
        if any(re.search(rf"(?<![\w.-]){re.escape(topic)}-\d+: ", text) for topic in topics):
            return f"sources.{name}", source.line
    return None, 0


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
