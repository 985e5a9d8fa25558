"""`route`: Connect's RegexRouter and TimestampRouter, where records can be sent to another topic."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from leafcuttr_filters.documents.json_values import CannotFilterError
from leafcuttr_filters.making import Judge
from leafcuttr_filters.transforms.java_times import JavaFormat
from leafcuttr_filters.transforms.replacements import replaced
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.filters import Routed, TopicContext, Verdict
from leafcuttr_sdk.records import Record


def make_route(context: TopicContext, values: Mapping[str, Any]) -> Judge:
    """Raises PluginError."""
    if not context.routes:
        raise PluginError(
            "route sends records to another topic, which a relay can do, and lc.filters of a topic cannot"
        )
    regex: re.Pattern[str] | None = values["regex"]
    if regex is None:
        return _by_time(context.topic, values["topic.format"], values["timestamp.format"])
    target = renamed(context.topic, regex, values["replacement"])
    if target == context.topic:
        return lambda record: record
    return lambda record: Routed(record, target)


def renamed(topic: str, regex: re.Pattern[str], replacement: str) -> str:
    """The new name, or the old one where the pattern is not that of the whole name. Raises PluginError."""
    found = regex.fullmatch(topic)
    if found is None:
        return topic
    name = replaced(found, replacement)
    if not name:
        raise PluginError(f"replacement={replacement}: nothing is left of the name {topic}")
    return name


def _by_time(topic: str, format: str, times: JavaFormat) -> Judge:
    named = format.replace("${topic}", topic)
    latest: list[Any] = [None, ""]  # records come with nearly the same times

    def name(timestamp: int) -> str:
        if latest[0] != timestamp:
            try:
                latest[:] = timestamp, named.replace("${timestamp}", times.written(timestamp))
            except ValueError as error:
                raise CannotFilterError(f"its timestamp: {error}") from None
        return str(latest[1])

    return _routing(name)


def _routing(name: Callable[[int], str]) -> Judge:
    def route(record: Record) -> Verdict:
        timestamp = record.timestamp
        if timestamp is None or timestamp < 0:
            raise CannotFilterError("it has no timestamp")
        return Routed(record, name(timestamp))

    return route
