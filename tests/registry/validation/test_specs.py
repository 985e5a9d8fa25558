"""What a start asks is what the validators need, without importing them."""

from __future__ import annotations

import subprocess
import sys

from leafcuttr_registry.validation import specs
from leafcuttr_registry.validation.claims import HEADERS
from leafcuttr_sdk.schema_framing import ID_SIZE, MAX_INDEXES


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
