"""`allow` and `deny`: by topic, key, header, value, field and condition, of which all that are given have to match.

What depends on the topic alone is decided when the filter is made. What costs least is tested first.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from leafcuttr_filters.documents.fields import MISSING, get
from leafcuttr_filters.documents.json_values import CannotFilterError
from leafcuttr_filters.documents.parts import reader
from leafcuttr_filters.making import Judge, matcher, utf8
from leafcuttr_filters.transforms.texts import text_of
from leafcuttr_sdk.conditions.searching import Search
from leafcuttr_sdk.filters import DROP, TopicContext, Verdict
from leafcuttr_sdk.records import Record

Values = Mapping[str, Any]
Test = Callable[[Record], bool]


def make_allow(context: TopicContext, values: Values) -> Judge:
    matches = _all_of(context, values)

    def allow(record: Record) -> Verdict:
        return record if matches(record) else DROP

    return allow


def make_deny(context: TopicContext, values: Values) -> Judge:
    matches = _all_of(context, values)

    def deny(record: Record) -> Verdict:
        return DROP if matches(record) else record

    return deny


def make_tombstones(context: TopicContext, values: Values) -> Judge:
    return lambda record: DROP if record.value is None else record


def _all_of(context: TopicContext, values: Values) -> Test:
    if not _is_of_topic(context.topic, values):
        return lambda _: False
    tests = tuple(_tests(context, values))
    if not tests:
        return lambda _: True
    if len(tests) == 1:
        return tests[0]

    def matches(record: Record) -> bool:
        return all(test(record) for test in tests)

    return matches


def _is_of_topic(topic: str, values: Values) -> bool:
    patterns: tuple[str, ...] | None = values["topic"]
    if patterns is not None and not any(_glob(one).fullmatch(topic) for one in patterns):
        return False
    search: Search | None = values["topic.regex"]
    return search is None or search(topic)


def _glob(pattern: str) -> re.Pattern[str]:
    escaped = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(escaped, re.DOTALL)


def _tests(context: TopicContext, values: Values) -> Iterator[Test]:
    keys: tuple[str, ...] | None = values["key"]
    if keys is not None:
        wanted = frozenset(key.encode() for key in keys)
        yield lambda record: record.key in wanted
    of_key: Search | None = values["key.regex"]
    if of_key is not None:
        search_key = of_key
        yield lambda record: record.key is not None and search_key(utf8(record.key))
    if values["header"] is not None:
        yield _header_test(values["header"], values["header.value"], values["header.regex"])
    of_value: Search | None = values["value.regex"]
    if of_value is not None:
        search_value = of_value
        yield lambda record: record.value is not None and search_value(utf8(record.value))
    if values["field"] is not None:
        yield _field_test(context, values)
    if values["condition"] is not None:
        yield matcher(values["condition"], context, values)


def _header_test(name: str, texts: tuple[str, ...] | None, search: Search | None) -> Test:
    wanted = None if texts is None else frozenset(text.encode() for text in texts)

    def matches(record: Record) -> bool:
        return any(
            header == name
            and (wanted is None or value in wanted)
            and (search is None or (value is not None and search(utf8(value))))
            for header, value in record.headers
        )

    return matches


def _field_test(context: TopicContext, values: Values) -> Test:
    read, path = reader(context, values), values["field"]
    texts: tuple[str, ...] | None = values["field.value"]
    search: Search | None = values["field.regex"]

    def matches(record: Record) -> bool:
        if record.value is None:
            return False
        try:
            found = get(read(record, record.value), path)
        except CannotFilterError:
            return False
        if found is MISSING or found is None:
            return False
        if texts is None and search is None:
            return True
        text = text_of(found)
        return (texts is None or text in texts) and (search is None or search(text))

    return matches
