"""The log for people and machines: one line an event, on standard error, as text or JSON. Quiet by default.

The lines of the audit log are JSON already, and stay as they are in either format.
"""

import json
import logging
import sys
from typing import Final, Literal, TextIO

from leafcuttr.runtime.standard_streams import is_open, open_closed_streams
from leafcuttr.state.security import AUDIT_LOGGER
from leafcuttr_sdk.trouble import Complaints, exhausted

Format = Literal["text", "json"]

_TEXT: Final = "%(asctime)s %(levelname)s %(message)s"
# A name that a client chose must not make lines of its own, nor move a terminal's cursor.
_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {
    ord("\n"): "\\n",
    ord("\t"): "\\t",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}
_LONGEST: Final = 4000
_OF_PLUGINS: Final = "leafcuttr.plugin."
"""What the names of plugins' loggers begin with."""


class _TextFormatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's
        """What a plugin says has its name before it: the words are not ours."""
        if record.name.startswith(_OF_PLUGINS):
            record.message = f"plugin {record.name.removeprefix(_OF_PLUGINS)}: {record.message}"
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        if record.name == AUDIT_LOGGER:
            return record.getMessage()
        line = super().format(record).translate(_CONTROLS)
        # The end of a traceback says what happened, so the middle goes.
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        if record.name == AUDIT_LOGGER:
            return record.getMessage()
        event = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False)


class _Pauses(logging.Filter):
    """What `trio.serve_listeners`, by which plugins serve, says with a traceback ten times a second while nothing can
    be accepted: one line here."""

    def __init__(self) -> None:
        super().__init__()
        self._complain = Complaints(logging.getLogger("leafcuttr.server"))

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        reason = None if error is None else exhausted(error)
        if reason is None:
            return True
        self._complain(reason, "a listener of a plugin pauses: %s", reason, level=logging.WARNING)
        return False


class _Handler(logging.StreamHandler[TextIO]):
    """To standard error, whatever plugins do to `sys.stderr`: one that closes it would make an error of each line."""

    def emit(self, record: logging.LogRecord) -> None:
        if not is_open(self.stream):
            open_closed_streams()
            if is_open(sys.stderr):
                self.stream = sys.stderr
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's
        if is_open(self.stream) and is_open(sys.stderr):  # otherwise there is no place left to say so
            super().handleError(record)


def set_up_logging(form: Format, level: str) -> None:
    """Send LeafCuttr's own log to standard error. `level` is a name of the logging module, in any case."""
    handler = _Handler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter(_TEXT))
    root = logging.getLogger("leafcuttr")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
    of_trio = logging.getLogger("trio.serve_listeners")
    of_trio.handlers[:] = [handler]
    of_trio.filters[:] = [_Pauses()]
    of_trio.propagate = False
