"""What a start asks is what the validators need, without importing them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from leafcuttr_registry.validation import specs
from leafcuttr_registry.validation.claims import HEADERS
from leafcuttr_sdk.errors import BrokerError, InvalidRecord
from leafcuttr_sdk.schema_framing import ID_SIZE, MAX_INDEXES
from support.checked_topics import AVRO, Shop, framed


def test_headers_and_bytes_are_those_of_the_wire_format() -> None:
    keys, values, whole = specs.validators()
    assert keys.peek is not None and values.peek is not None and whole.peek is None
    assert keys.peek.headers == (HEADERS["key"],) and values.peek.headers == (HEADERS["value"],)
    assert keys.peek.key_bytes == values.peek.value_bytes == ID_SIZE + 1 + MAX_INDEXES


def test_a_start_without_a_registry_imports_little() -> None:
    code = """
import sys, leafcuttr_registry as plugin
list(plugin.leafcuttr_register_settings()), list(plugin.leafcuttr_register_topic_settings())
list(plugin.leafcuttr_register_produce_validators()), list(plugin.leafcuttr_register_record_filters())
heavy = ("validation.ids", "validation.full", "validation.claims", "registry", "api", "avro", "json_schema", "protobuf")
print([name for name in heavy if f"leafcuttr_registry.{name}" in sys.modules])
others = ("leafcuttr_sdk.schemas", "leafcuttr_sdk.schema_framing", "fastavro", "quart")
print([name for name in others if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[:2] == ["[]", "[]"]


@pytest.mark.parametrize("name", ["schema-id-key", "schema-id-value", "schema"])
def test_one_that_is_named_without_a_check_is_refused(shop: Shop, name: str) -> None:
    """Its topic takes no records, and says why: it would check nothing."""
    topic = shop.topic(f"named-{name}", lc_validators=name)
    with pytest.raises(BrokerError, match=r"it has nothing to check: set lc\.schema\.validation\.key or"):
        shop.broker.produce(topic, b"x")
    checked = shop.topic(f"checked-{name}", lc_validators=name, value="id")
    schema = shop.register(f"checked-{name}-value", AVRO)
    shop.broker.produce(checked, framed(schema, b"\2"))
    with pytest.raises(InvalidRecord):
        shop.broker.produce(checked, b"x")


def test_the_filter_is_refused_where_nothing_is_set_aside(shop: Shop) -> None:
    topic = shop.topic("named-filter", lc_filters="schema", value="id")
    with pytest.raises(BrokerError, match=r"it sets nothing aside: set lc\.schema\.validation\.on\.error"):
        shop.broker.produce(topic, b"x")
    assert shop.topic("dlq-alone", lc_schema_validation_on_error="dlq")
    shop.broker.produce("dlq-alone", b"x")
