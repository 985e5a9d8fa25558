"""What `help()` shows of the SDK: the words of its source, and nothing of what every tuple has."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
import sys
import typing

import pytest

import leafcuttr_sdk
from leafcuttr_sdk import Plugin, Record, ServiceSpec, Setting, StoredRecord, TopicPartition, Type
from leafcuttr_sdk._described import described

TUPLES = [
    name
    for name in leafcuttr_sdk.__all__
    if isinstance(thing := getattr(leafcuttr_sdk, name), type) and hasattr(thing, "_fields")
]
PROTOCOLS = [
    name for name in leafcuttr_sdk.__all__ if getattr(getattr(leafcuttr_sdk, name), "_is_protocol", False)
]


def shown(thing: object) -> str:
    return pydoc.render_doc(thing, renderer=pydoc.plaintext)


def test_there_are_many() -> None:
    assert len(TUPLES) >= 29
    assert len(PROTOCOLS) >= 20


@pytest.mark.parametrize("name", TUPLES)
def test_fields_and_no_methods_of_tuples(name: str) -> None:
    thing = getattr(leafcuttr_sdk, name)
    text = shown(thing)
    assert "inherited from builtins.tuple" not in text, f"{name} is not decorated with _described.described"
    assert "Alias for field number" not in text
    assert "ForwardRef" not in text
    assert "__" not in text
    for field in thing._fields:
        assert f"\n |  {field}\n" in text
    assert f" |  {(inspect.getdoc(thing) or '').splitlines()[0]}\n" in text


def test_the_words_of_the_source_and_types_where_there_are_none() -> None:
    text = shown(Plugin)
    assert " |  extra\n |      The extra of its distribution that brings the packages" in text
    assert " |  modules\n |      Top-level modules that it needs when it is on" in text
    assert " |  offset\n |      int\n" in shown(StoredRecord)
    assert "ServiceSpec(name: str, make: Callable[[Broker], Service], needs: tuple[str, ...] = ())" in shown(
        ServiceSpec
    )


@pytest.mark.parametrize("name", leafcuttr_sdk.__all__)
def test_everything_can_be_shown(name: str) -> None:
    assert shown(getattr(leafcuttr_sdk, name))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_method_of_a_contract_says_what_it_does(name: str) -> None:
    own = {key: thing for key, thing in vars(getattr(leafcuttr_sdk, name)).items() if not key.startswith("_")}
    assert own
    assert [key for key, thing in own.items() if not inspect.getdoc(getattr(thing, "fget", thing))] == []


def test_they_are_tuples_as_before() -> None:
    record = Record(b"v", b"k", timestamp=7)
    assert record == (b"v", b"k", (), 7)
    assert repr(record) == "Record(value=b'v', key=b'k', headers=(), timestamp=7)"
    value, key, headers, timestamp = record
    assert (value, key, headers, timestamp) == tuple(record)
    assert record._replace(key=None).key is None
    assert record._asdict() == {"value": b"v", "key": b"k", "headers": (), "timestamp": 7}
    assert pickle.loads(pickle.dumps(record)) == record == copy.copy(record)
    assert type(pickle.loads(pickle.dumps(record))) is Record
    assert isinstance(record, tuple) and isinstance(record, Record)
    assert not hasattr(record, "__dict__")
    assert str(TopicPartition("t", 3)) == "t-3"
    match record:
        case Record(found, _):
            assert found == b"v"
        case _:
            pytest.fail("a pattern takes its fields")
    with pytest.raises(
        TypeError, match="missing 3 required positional arguments: 'type', 'default', and 'help'"
    ):
        Setting("x")  # type: ignore[call-arg]
    assert typing.get_type_hints(TopicPartition) == {"topic": str, "partition": int}
    assert [*inspect.signature(Setting).parameters] == [*Setting._fields]
    assert Setting("x", Type.INT, 1, "x").unit == ""


def test_without_its_source_it_shows_what_there_is() -> None:
    namespace: dict[str, type] = {}
    exec("from typing import NamedTuple\nclass Lost(NamedTuple):\n    'Nowhere.'\n    x: int", namespace)
    namespace["Lost"].__module__ = "nowhere"
    assert dir(described(namespace["Lost"])) == ["_replace", "x"]
    assert "nowhere" not in sys.modules
