"""What the settings of a topic mean together: ours, and Confluent's where ours are at their defaults."""

from __future__ import annotations

import pytest

import leafcuttr_registry
from leafcuttr_registry.validation.full import make_filter, make_validator
from leafcuttr_registry.validation.ids import make_for_keys, make_for_values
from leafcuttr_registry.validation.settings import Check, Strategy, options_of, topic_settings
from leafcuttr_sdk import PluginError
from leafcuttr_sdk.settings import Value
from leafcuttr_sdk.testing import topic_context
from support.column_registry import ColumnRegistry

RECORD = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
CHECK = "lc.schema.validation.value"
STRATEGY = "lc.schema.subject.strategy.value"
CONFLUENT = "confluent.value.schema.validation"
CONFLUENT_STRATEGY = "confluent.value.subject.name.strategy"
ON_ERROR = "lc.schema.validation.on.error"


@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize(
    "given, check, strategy",
    [
        ({}, Check.OFF, Strategy.TOPIC),
        ({CHECK: "id"}, Check.ID, Strategy.TOPIC),
        ({CHECK: "full", STRATEGY: "record"}, Check.FULL, Strategy.RECORD),
        ({CONFLUENT: True}, Check.ID, Strategy.TOPIC),
        ({CONFLUENT: True, CHECK: "full"}, Check.FULL, Strategy.TOPIC),
        ({CONFLUENT: True, CONFLUENT_STRATEGY: RECORD}, Check.ID, Strategy.RECORD),
        ({STRATEGY: "topic-record", CONFLUENT_STRATEGY: RECORD}, Check.OFF, Strategy.TOPIC_RECORD),
        ({CHECK: "off", CONFLUENT: True}, Check.ID, Strategy.TOPIC),
        ({STRATEGY: "topic", CONFLUENT_STRATEGY: RECORD}, Check.OFF, Strategy.RECORD),
    ],
)
def test_what_they_mean(given: dict[str, Value], check: Check, strategy: Strategy, part: str) -> None:
    settings = {name.replace("value", part): value for name, value in given.items()}
    context = topic_context(plugin=leafcuttr_registry, topic_settings=settings)
    found = options_of(context.topic_settings, part)  # type: ignore[arg-type]
    assert found == (part, check, strategy)
    other = options_of(context.topic_settings, "key" if part == "value" else "value")
    assert (other.check, other.strategy) == (Check.OFF, Strategy.TOPIC)


def test_the_help_says_which_holds() -> None:
    helps = {each.name: each.help for each in topic_settings()}
    assert helps[CONFLUENT].endswith(f"`{CHECK}=id` where that is off.")
    assert helps[CONFLUENT_STRATEGY].endswith("it holds where that is topic.")


@pytest.mark.parametrize(
    "given, made",
    [
        ({}, set()),
        ({CHECK: "id"}, {make_for_values}),
        ({CHECK: "full"}, {make_validator}),
        ({CHECK: "full", "lc.schema.validation.key": "id"}, {make_validator, make_for_keys}),
        ({CHECK: "id", "lc.schema.validation.key": "id"}, {make_for_values, make_for_keys}),
        ({CHECK: "id", ON_ERROR: "dlq"}, {make_filter}),
        ({CHECK: "full", "lc.schema.validation.key": "id", ON_ERROR: "dlq"}, {make_filter}),
        ({ON_ERROR: "dlq"}, set()),
    ],
)
def test_a_topic_has_what_its_settings_need(given: dict[str, Value], made: set[object]) -> None:
    context = topic_context(plugin=leafcuttr_registry, topic_settings=given, schemas=ColumnRegistry())
    makers = (make_for_keys, make_for_values, make_validator, make_filter)
    assert {each for each in makers if each(context) is not None} == made


@pytest.mark.parametrize("given", [{CHECK: "id"}, {CHECK: "full"}, {CHECK: "id", ON_ERROR: "dlq"}])
def test_without_a_registry_there_is_nothing_to_check_against(given: dict[str, Value]) -> None:
    context = topic_context(plugin=leafcuttr_registry, topic_settings=given)
    with pytest.raises(PluginError, match="there is no schema registry in this broker"):
        for make in (make_for_values, make_validator, make_filter):
            make(context)
