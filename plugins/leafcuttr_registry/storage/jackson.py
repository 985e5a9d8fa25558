"""JSON as Jackson writes it: no spaces, members in the order given, escapes in upper case, all else as UTF-8."""

import json
from typing import Any, Final

_ESCAPES: Final = {
    **{code: f"\\u{code:04X}" for code in range(32)},
    ord("\b"): "\\b",
    ord("\t"): "\\t",
    ord("\n"): "\\n",
    ord("\f"): "\\f",
    ord("\r"): "\\r",
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}


def read(data: bytes) -> Any:
    """Raises ValueError for what is no JSON in UTF-8, and for a text with a lone surrogate, which UTF-8 does not have:
    neither an answer nor a record could hold it."""
    try:
        found = json.loads(data.decode("utf-8-sig"))
        if b"\\u" in data:
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("a text has a lone surrogate") from None
    return found


def write(value: Any) -> str:
    """Of what `json.loads` gives."""
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{write(key)}:{write(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(write, value)) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
