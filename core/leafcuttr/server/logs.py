"""The log for people and machines: one line an event, on standard error, as text or JSON. Quiet by default."""

import json
import logging
import sys
from typing import Final, Literal

Format = Literal["text", "json"]

_TEXT: Final = "%(asctime)s %(levelname)s %(message)s"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False)


def set_up_logging(form: Format, level: str) -> None:
    """Send LeafCuttr's own log to standard error. `level` is a name of the logging module, in any case."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if form == "json" else logging.Formatter(_TEXT))
    root = logging.getLogger("leafcuttr")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
