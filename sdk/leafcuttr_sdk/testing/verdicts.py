"""Whether a verdict of a filter, or the answer of a validator, is one that the broker can carry out."""

import inspect
import re
from typing import Any, Final, TypeGuard, cast

from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.filters import DeadLetter, Drop, NotReady, Routed
from leafcuttr_sdk.records import Record

_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")
_LONG: Final = range(-(2**63), 2**63)


def why_no_verdict(verdict: object) -> str | None:
    """What is wrong with what `filter` returned; None if nothing is."""
    if isinstance(verdict, Drop):
        return None
    if isinstance(verdict, DeadLetter):
        return _why_no_dead_letter(verdict)
    if isinstance(verdict, NotReady):
        return _why_not_not_ready(verdict)
    if isinstance(verdict, Routed):
        return _why_not_routed(verdict)
    if isinstance(verdict, Record):
        return _why_no_record(verdict)
    if verdict is None:
        return "returned None: return the record to keep it, DROP to leave it out"
    if isinstance(verdict, bool):
        return f"returned {verdict}: return the record itself to keep it, DROP to leave it out"
    if verdict is Drop or verdict is DeadLetter or verdict is NotReady or verdict is Routed:
        return (
            f"returned the class {verdict.__name__}: return DROP, DeadLetter(reason) or NotReady(waits_for), "
            "or Routed(record, topic) in a relay"
        )
    if inspect.isawaitable(verdict):
        return "returned something to await: a filter is called as a plain function"
    return f"returned {kind_of(verdict)}: return a Record, DROP, DeadLetter(reason) or NotReady(waits_for)"


def why_no_reason(answer: object) -> str | None:
    """What is wrong with what `validate` returned; None if nothing is."""
    if answer is None:
        return None
    if isinstance(answer, NotReady):
        return _why_not_not_ready(answer)
    if answer is NotReady:
        return "returned the class NotReady: return NotReady(waits_for)"
    if isinstance(answer, bool):
        meaning = "accept" if answer else "refuse"
        return f"returned {answer}: return None to accept, a reason as text to refuse (to {meaning}, if that was meant)"
    if inspect.isawaitable(answer):
        return "returned something to await: a validator is called as a plain function"
    if not isinstance(answer, str):
        return f"returned {kind_of(answer)}: return None to accept, a reason as text to refuse"
    return _why_no_line("the reason", answer)


def _why_no_dead_letter(verdict: DeadLetter) -> str | None:
    reason, topic, record, _ = cast("tuple[Any, Any, Any, Any]", verdict)
    if not isinstance(reason, str):
        return f"returned a DeadLetter whose reason is {kind_of(reason)}: it is one line of text"
    if topic is not None and not (isinstance(topic, str) and _TOPIC.match(topic) and topic.strip(".")):
        return f"returned a DeadLetter for the topic {topic!r}: that is no name of a topic"
    if record is not None and not isinstance(record, Record):
        return f"returned a DeadLetter whose record is {kind_of(record)}: it is a Record, or None"
    if record is not None and (wrong := _why_no_record(record)):
        return f"{wrong} (the record of its DeadLetter)"
    return _why_no_line("the reason of its DeadLetter", reason)


def _why_not_routed(verdict: Routed) -> str | None:
    record, topic = cast("tuple[Any, Any]", verdict)
    if not isinstance(topic, str):
        return f"returned a Routed whose topic is {kind_of(topic)}: it is the name of a topic"
    if not topic or not topic.isprintable():
        return f"returned a Routed to the topic {topic!r}: that is no name of a topic"
    if not isinstance(record, Record):
        return f"returned a Routed whose record is {kind_of(record)}: it is a Record"
    wrong = _why_no_record(record)
    return wrong and f"{wrong} (the record of its Routed)"


def _why_not_not_ready(verdict: NotReady) -> str | None:
    (waits_for,) = cast("tuple[Any]", verdict)
    if not isinstance(waits_for, str):
        return f"returned a NotReady that waits for {kind_of(waits_for)}: it is one line of text"
    if not waits_for.strip():
        return "what its NotReady waits for is empty: say what it lacks, as in 'it waits for ...'"
    return _why_no_line("what its NotReady waits for", waits_for)


def _why_no_line(what: str, text: str) -> str | None:
    if not text.strip():
        return f"{what} is empty: say what is wrong with the record, so that a person can mend it"
    if len(text.splitlines()) > 1:
        return f"{what} has several lines: it is one ({text.splitlines()[0]!r}...)"
    return _why_no_utf8(what, text)


def _why_no_record(record: Record) -> str | None:
    value, key, headers, timestamp = cast("tuple[Any, Any, Any, Any]", record)
    for name, part in (("value", value), ("key", key)):
        if part is not None and not isinstance(part, bytes):
            mend = f": encode it ({name}.encode())" if isinstance(part, str) else ""
            return f"returned a Record whose {name} is {kind_of(part)}, not bytes or None{mend}"
    if timestamp is not None and (not isinstance(timestamp, int) or isinstance(timestamp, bool)):
        return f"returned a Record whose timestamp is {kind_of(timestamp)}: it is whole milliseconds"
    if timestamp is not None and timestamp not in _LONG:
        return f"returned a Record whose timestamp is {timestamp}: that does not fit into 64 bits"
    return _why_no_headers(headers)


def _why_no_headers(headers: object) -> str | None:
    kind = kind_of(headers)
    if not _is_tuple(headers):
        mend = ": tuple(headers.items())" if isinstance(headers, dict) else ""
        return f"returned a Record whose headers are {kind}, not a tuple of pairs{mend}"
    for header in headers:
        if not _is_tuple(header) or len(header) != 2:
            return f"returned a Record with the header {header!r}: a header is a pair of name and value"
        name, value = header
        if not isinstance(name, str):
            return f"returned a Record with a header whose name is {kind_of(name)}: names are text"
        if value is not None and not isinstance(value, bytes):
            return f"returned a Record whose header {name!r} is {kind_of(value)}, not bytes or None"
        if wrong := _why_no_utf8("returned a Record: the name of a header", name):
            return wrong
    return None


def _why_no_utf8(what: str, text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{what} cannot be written as UTF-8 ({text!r})"
    return None


def _is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)
