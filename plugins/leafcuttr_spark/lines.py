"""What Spark, Python workers and clusters raise, as one line.

A failure reaches the driver wrapped many times: a traceback of Python within the message of a Java exception within the
stack trace of another one. The line is that of the innermost one. Only texts are read here, so it is without PySpark,
and tasks may import it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from leafcuttr_sdk.errors import PluginError

_LONGEST: Final = 500
_TRACEBACK: Final = "Traceback (most recent call last):"
_RAISED: Final = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?([A-Za-z_]\w*): (.*)$")
"""The last line of a traceback."""
_JAVA_CLASS: Final = re.compile(r"^(?:[a-z]\w*\.)+(?:\w+\$)*([A-Z]\w*): ")
_CALLED: Final = re.compile(r"An error occurred while calling \S+\n: ")
"""What Py4J puts before an exception that PySpark has no class for."""
_RPC: Final = re.compile(
    r'<_\w+ of RPC that terminated with:\s+status = StatusCode\.(\w+)\s+details = "(.*?)"'
    r"\s+debug_error_string = .*>",
    re.DOTALL,
)
"""What gRPC raises, under Spark Connect."""
_CAUSED: Final = re.compile(r"^Caused by: (\S.*)$", re.MULTILINE)
_CONDITION: Final = re.compile(r"^\[([A-Z][A-Z0-9_.]*)\] ")
_STATE: Final = re.compile(r" SQLSTATE: [0-9A-Z]{5}.*$")
_QUERY: Final = re.compile(r"^Query \[id = [\w-]+, runId = [\w-]+\] terminated with exception: (?=\S)")
"""What comes before the failure of a stream: a pipeline is one query."""
_FRAGMENT: Final = re.compile(r"^== .* ==$")
_OURS: Final = (
    "FunctionError",
    "OptionError",
    "PluginError",
    "PlacingError",
    "RowTimeError",
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


class CausedError(PluginError):
    """What became of a failure that Spark keeps as a text alone. The message is the line of that failure, and this
    result."""

    def __init__(self, result: str, cause: str = "") -> None:
        self.result = result
        self.cause = cause
        super().__init__(self.line())

    def line(self, hide: Callable[[str], str] = str) -> str:
        """`hide` takes secrets out of the cause before it is shortened."""
        if not self.cause:
            return self.result
        end = f"; {self.result}"
        return f"{shortened(_of_text(hide(self.cause)), _LONGEST - len(end))}{end}"


def reads_in_other_places(text: str) -> bool:
    """Whether it says that a query has other places to read from than its checkpoint."""
    return _OTHER_SOURCES.search(text) is not None


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
    if isinstance(error, CausedError):
        return error.line(hide)
    text = hide(_RPC.sub(lambda found: found[2] or found[1], str(error))) or type(error).__name__
    if (counts := _OTHER_SOURCES.search(text)) is not None:
        return (
            f"its query reads in {counts[2]} places, and its checkpoint is of one with {counts[1]}: dead letters, or a"
            " sink or a step that uses a frame once more, are places more. Undo the edit, or begin anew: leafcuttr"
            " spark replay FILE --from earliest"
        )
    is_named = type(error).__module__ == "builtins" and not isinstance(error, (OSError, RuntimeError))
    if is_named and _TRACEBACK not in text:
        text = f"{type(error).__name__}: {text}"
    return shortened(_of_text(text))


def _of_text(text: str) -> str:
    """The innermost message of one that may have tracebacks and stack traces in it."""
    found = _from_traceback(text)
    if found is not None:
        return _cleaned(found)
    called = _CALLED.match(text)
    if called is None:
        return _cleaned(_JAVA_CLASS.sub(_class_name, text))
    whole = _cleaned(_JAVA_CLASS.sub(r"\1: ", text[called.end() :]))
    causes = [_JAVA_CLASS.sub(_class_name, each).strip() for each in _CAUSED.findall(text)]
    inner = next((each for each in reversed(causes) if each), "")
    # The same with more, as an address.
    inner = max((each for each in causes if inner in each), key=len, default=inner)
    # Of libraries the outer one often says that there was an error, and no more.
    return whole if not inner or inner in whole else f"{whole.rstrip('.:')}: {inner}"


def _class_name(found: re.Match[str]) -> str:
    """What is left of the name of an exception of Java."""
    return "" if found[1].endswith("Exception") else f"{found[1]}: "


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
    whole = _QUERY.sub("", _CONDITION.sub("", whole))
    return _STATE.sub("", whole).strip()


def shortened(text: str, longest: int = _LONGEST) -> str:
    """At most so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
