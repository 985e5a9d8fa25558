"""The validators and the filter as a start sees them: their names, and which settings imply them. A start without a
registry needs that too, so what they do is imported when a topic has one.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from leafcuttr_registry.validation.peeks import PEEKED_BYTES, peek_of
from leafcuttr_registry.validation.settings import CHECKS, ON_ERROR, need_a_check, need_dead_letters
from leafcuttr_sdk.filters import ProduceValidatorSpec, RecordFilterSpec

if TYPE_CHECKING:
    from leafcuttr_registry.validation.full import SchemaFilter, SchemaValidator
    from leafcuttr_registry.validation.ids import SchemaIds
    from leafcuttr_sdk.filters import TopicContext


def validators() -> Iterator[ProduceValidatorSpec]:
    """Of ids one for keys and one for values: a topic that checks one of them does not pay for both."""
    keys, values = peek_of("key", PEEKED_BYTES), peek_of("value", PEEKED_BYTES)
    yield ProduceValidatorSpec(
        "schema-id-key", "keys have to have the id of a schema", _ids_of_keys, keys, CHECKS
    )
    yield ProduceValidatorSpec(
        "schema-id-value", "values have to have the id of a schema", _ids_of_values, values, CHECKS
    )
    yield ProduceValidatorSpec(
        "schema", "keys or values have to be data of a schema", _validator, implied_by=CHECKS
    )


def filters() -> Iterator[RecordFilterSpec]:
    yield RecordFilterSpec(
        "schema",
        "sets aside records whose keys or values are not data of a schema",
        _filter,
        implied_by=(ON_ERROR,),
    )


def _ids_of_keys(context: "TopicContext") -> "SchemaIds | None":
    from leafcuttr_registry.validation.ids import make_for_keys

    need_a_check(context.topic_settings)
    return make_for_keys(context)


def _ids_of_values(context: "TopicContext") -> "SchemaIds | None":
    from leafcuttr_registry.validation.ids import make_for_values

    need_a_check(context.topic_settings)
    return make_for_values(context)


def _validator(context: "TopicContext") -> "SchemaValidator | None":
    from leafcuttr_registry.validation.full import make_validator

    need_a_check(context.topic_settings)
    return make_validator(context)


def _filter(context: "TopicContext") -> "SchemaFilter | None":
    from leafcuttr_registry.validation.full import make_filter

    need_dead_letters(context.topic_settings)
    return make_filter(context)
