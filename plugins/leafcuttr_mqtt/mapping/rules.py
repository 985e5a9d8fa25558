"""The mappings, and where a topic goes by them.

What a wildcard of the filter stands for can be used in the name of the Kafka topic and in the key: `{1}` is the first
one's. In the name of a Kafka topic the slashes of what `#` stands for become dots. Any other character that no Kafka
topic can have in its name is left as it is, so that no two topics meet in one by chance: the messages of such a topic
are refused.
"""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from leafcuttr_mqtt.mapping.fields import DEFAULT_KEY, KEY_FIELDS
from leafcuttr_mqtt.mapping.kafka_names import why_no_target
from leafcuttr_mqtt.mapping.templates import Template, parse
from leafcuttr_mqtt.topics.names import why_no_filter
from leafcuttr_mqtt.topics.tree import SubscriptionTree


class Rule(NamedTuple):
    """One mapping."""

    filter: str
    kafka_topic: Template
    key: Template
    """Of the records; an empty one is no key."""
    captures: re.Pattern[str] | None
    """What finds the captures in a topic; None where nothing uses them."""


class Destination(NamedTuple):
    """Where a topic goes by one mapping."""

    rule: Rule
    kafka_topic: str
    captures: tuple[str, ...]
    wrong: str | None
    """Why there can be no such Kafka topic."""


class Rules:
    """All mappings."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules: Final = tuple(sorted(rules, key=lambda rule: rule.filter))
        self._tree: SubscriptionTree[int, Rule] = SubscriptionTree(0)  # those who ask remember what it says
        for number, rule in enumerate(self.rules):
            self._tree.add(rule.filter, number, rule)
        targets = [rule.kafka_topic for rule in self.rules]
        self._fixed: Final = frozenset(each.fixed for each in targets if each.fixed is not None)
        self._captured: Final = [each.pattern() for each in targets if each.fixed is None]

    def __bool__(self) -> bool:
        return bool(self.rules)

    def destinations(self, topic: str) -> list[Destination]:
        """Where the messages of a topic go: each Kafka topic once, by the first mapping that leads to it, in the order
        of their filters as texts."""
        found: dict[str, Destination] = {}
        for _, (rule,) in sorted(self._tree.match(topic).subscribers):
            captures = _captured(rule, topic)
            name = rule.kafka_topic.fixed
            wrong = None
            if name is None:
                name = rule.kafka_topic.render(partial(_for_name, captures))
                wrong = why_no_target(name)
            if name not in found:
                found[name] = Destination(rule, name, captures, wrong)
        return list(found.values())

    def leads_to(self, kafka_topic: str) -> bool:
        """Whether messages may be stored in a Kafka topic of this name."""
        return kafka_topic in self._fixed or any(each.fullmatch(kafka_topic) for each in self._captured)


def make_rules(mappings: Mapping[str, str], keys: Mapping[str, str], default_key: str = DEFAULT_KEY) -> Rules:
    """Mappings from the texts of the settings: Kafka topics by filter, templates of keys by filter. Raises ValueError
    with one line."""
    for each in keys:
        if each not in mappings:
            raise ValueError(f"there is a key for the filter {each}, which no mapping has")
    return Rules(
        make_rule(each, kafka_topic, keys.get(each, default_key)) for each, kafka_topic in mappings.items()
    )


def make_rule(topic_filter: str, kafka_topic: str, key: str = DEFAULT_KEY) -> Rule:
    """Raises ValueError, whose text says why in one clause."""
    wrong = why_no_mapped_filter(topic_filter)
    if wrong is not None:
        raise ValueError(wrong)
    count = count_captures(topic_filter)
    target = parse(kafka_topic, captures=count)
    # What stands for a capture here is one that could be in a name.
    wrong = why_no_target(target.render(lambda _: "a"))
    if wrong is not None:
        raise ValueError(wrong)
    of_key = parse(key, KEY_FIELDS, count)
    used = [name for name in (*target.fields, *of_key.fields) if name not in KEY_FIELDS]
    return Rule(topic_filter, target, of_key, _pattern(topic_filter) if used else None)


def why_no_mapped_filter(topic_filter: str) -> str | None:
    """Why messages cannot be mapped by a filter, in one clause."""
    if topic_filter.startswith("$share/"):
        return "the filter of a mapping is not that of a shared subscription"
    wrong = why_no_filter(topic_filter)
    return None if wrong is None else f"{topic_filter} is no topic filter: {wrong}"


def count_captures(topic_filter: str) -> int:
    """How many wildcards a filter has."""
    return sum(level in ("+", "#") for level in topic_filter.split("/"))


def _for_name(captures: tuple[str, ...], field: str) -> str:
    return captures[int(field) - 1].replace("/", ".")


def _pattern(topic_filter: str) -> re.Pattern[str]:
    """A pattern that finds in a topic that matches what each wildcard stands for."""
    levels = topic_filter.split("/")
    rest = levels.pop() if levels[-1] == "#" else None
    pattern = "/".join(["([^/]*)" if level == "+" else re.escape(level) for level in levels])
    if rest is not None:  # which also matches the level above it, and then stands for nothing
        pattern += "(?:/(.*))?" if levels else "(.*)"
    return re.compile(pattern, re.DOTALL)


def _captured(rule: Rule, topic: str) -> tuple[str, ...]:
    found = None if rule.captures is None else rule.captures.fullmatch(topic)
    return () if found is None else found.groups("")
