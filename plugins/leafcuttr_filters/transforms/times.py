"""`timestamp`: Connect's TimestampConverter. The type of a time tells what it is: a text is in `format`, a number of
the precision that is given."""

from collections.abc import Mapping
from typing import Any, Final

from leafcuttr_filters.documents.fields import Path, update
from leafcuttr_filters.documents.json_values import CannotFilterError
from leafcuttr_filters.documents.parts import changer
from leafcuttr_filters.making import Judge
from leafcuttr_filters.transforms.fields import described, members_of
from leafcuttr_filters.transforms.java_times import JavaFormat
from leafcuttr_sdk.filters import TopicContext
from leafcuttr_sdk.records import Record

_DAY_MS: Final = 86_400_000
_PER_MS: Final = {"milliseconds": 1, "microseconds": 1000, "nanoseconds": 1_000_000}


def make_timestamp(context: TopicContext, values: Mapping[str, Any]) -> Judge:
    path: Path = values["field"] or ()
    target: str = values["target.type"]
    format: JavaFormat | None = values["format"]
    precision: str = values["unix.precision"]

    def convert(value: Any) -> Any:
        if value is None:
            return None
        try:
            return _to(target, _from(value))
        except (ValueError, OverflowError) as error:
            raise CannotFilterError(f"{described(path)}: {error}") from None

    def _from(value: Any) -> int:
        if type(value) is str:
            if format is None:
                raise ValueError("it is a text, and there is no format to read it by")
            return format.read(value)
        if type(value) is not int:
            raise ValueError("it is neither a text nor a whole number")
        return value * 1000 if precision == "seconds" else _divided(value, _PER_MS[precision])

    def _to(kind: str, ms: int) -> Any:
        if kind == "string":
            assert format is not None
            return format.written(ms)
        if kind == "unix":
            return _divided(ms, 1000) if precision == "seconds" else ms * _PER_MS[precision]
        if kind == "Date":
            return ms - ms % _DAY_MS
        return ms % _DAY_MS if kind == "Time" else ms

    def timestamp(document: Any, _: Record) -> Any:
        if not path:
            return convert(document)
        members_of(document)
        return update(document, path, convert)

    return changer(context, values, timestamp)


def _divided(number: int, by: int) -> int:
    """As TimeUnit of Java converts: cut off towards 0."""
    return number // by if number >= 0 else -(-number // by)
