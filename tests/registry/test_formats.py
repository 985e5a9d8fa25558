"""The formats that come with the registry are imported late, and are what the list says."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from leafcuttr_registry.formats import LateFormat, formats


def test_there_are_three() -> None:
    assert [each.name for each in formats()] == ["AVRO", "JSON", "PROTOBUF"]


@pytest.mark.parametrize("late", list(formats()), ids=lambda each: each.name)
def test_each_is_what_the_list_says(late: LateFormat) -> None:
    assert (late.name, late.summary) == (late.real.name, late.real.summary)
    assert late.rules == late.real.rules and late.rules
    sent = pickle.loads(pickle.dumps(late))
    assert type(sent) is type(late.real)
    schema = late.parse(late.rules[0].old, {})
    assert list(late.differences(schema, schema)) == []


def test_the_list_imports_none_of_them() -> None:
    code = (
        "import sys; from leafcuttr_registry.formats import formats; [(f.name, f.summary) for f in formats()];"
        "print([m for m in ('fastavro', 'jsonschema', 'google.protobuf') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
