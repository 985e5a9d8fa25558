"""A validator that looks at the first bytes of values and at a header, in a real broker, by clients of others."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.errors import PluginError
from leafcuttr.plugins.registration import Hooks
from leafcuttr.wire.records import Record as Stored
from leafcuttr.wire.records import encode_batch
from support import librdkafka
from support.broker_process import BrokerProcess, running_broker
from support.forked_start import run_leafcuttr
from support.wire_client import WireClient

NOW = 1_700_000_000_000
ID = "__value_schema_id"
SOURCE = f"""
from leafcuttr_sdk import Peek, Plugin, ProduceValidatorSpec

PLUGIN = Plugin(name="schemas", api_version=1, summary="Values have schemas.")


def leafcuttr_register_produce_validators():
    yield ProduceValidatorSpec("schemas", "values have schemas", Schemas, Peek(value_bytes=5, headers=("{ID}",)))
    yield ProduceValidatorSpec("small", "values are small", Small)
    yield ProduceValidatorSpec("none", "has no method", Small, Peek(key_bytes=0))
    yield ProduceValidatorSpec("narrow", "needs less of its topic", Narrow, Peek(value_bytes=5))


class Schemas:
    def __init__(self, context):
        pass

    def validate_batch(self, batch):
        return {{
            index: f"{{value!r}} has no schema"
            for index, (value, ids) in enumerate(zip(batch.values, batch.headers["{ID}"]))
            if value is not None and value[:1] != b"\\0" and not ids
        }}


class Narrow:
    def __init__(self, context):
        self.peek = Peek(value_bytes=2) if context.topic == "t" else 2

    def validate_batch(self, batch):
        return {{index: f"begins with {{value!r}}" for index, value in enumerate(batch.values)}}


class Small:
    def __init__(self, context):
        pass

    def validate(self, record):
        return "too large" if len(record.value or b"") > 1000 else None
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "schemas.py").write_text(SOURCE)
    return plugins


def answer(broker: BrokerProcess, topic: str, records: list[Stored], **more: Any) -> Any:
    with WireClient(broker.address) as wire:
        return wire.produce(topic, encode_batch(records, **more))


def test_clients_of_others(tmp_path: Path, folder: Path) -> None:
    from kafka import KafkaProducer
    from kafka.errors import InvalidRecordError

    good = [b"\0\0\0\0\1%d" % n for n in range(200)]
    with running_broker(tmp_path, {"lc.plugins.path": str(folder)}) as broker:
        librdkafka.create(broker.address, "t", lc_validators="schemas")
        assert len(librdkafka.send(broker.address, "t", good, timestamp=NOW)) == 200
        for codec in (None, "gzip"):
            producer = KafkaProducer(
                bootstrap_servers=broker.address, compression_type=codec, linger_ms=50, retries=0
            )
            sent = [producer.send("t", value) for value in good]
            sent.append(producer.send("t", b"plain", headers=[(ID, bytes(17))]))
            producer.flush(60)
            assert all(one.get(60).topic == "t" for one in sent)
            with pytest.raises(InvalidRecordError):
                producer.send("t", b"plain").get(60)
            producer.close()
        assert librdkafka.watermarks(broker.address, "t") == (0, 200 + 2 * 201)


def test_those_at_fault_are_named_and_others_see_records(tmp_path: Path, folder: Path) -> None:
    records = [Stored(n, NOW, None, b"\0\0\0\0\1x") for n in range(6)]
    with running_broker(tmp_path, {"lc.plugins.path": str(folder)}) as broker:
        librdkafka.create(broker.address, "t", lc_validators="small,schemas")
        assert answer(broker, "t", records).error_code == 0
        records[1] = Stored(1, NOW, None, b"plain text")
        records[2] = Stored(2, NOW, None, b"plain text", ((ID, b"1"),))
        records[3] = Stored(3, NOW, None, None)
        records[4] = Stored(4, NOW, None, b"x" * 2000)
        refused = answer(broker, "t", records)
        assert refused.error_code == 87
        assert [(e.batch_index, e.batch_index_error_message) for e in refused.record_errors] == [
            (1, "b'plain' has no schema"),
            (4, "too large"),
        ]
        assert librdkafka.watermarks(broker.address, "t") == (0, 6)


def test_one_without_the_method_closes_its_topic(tmp_path: Path, folder: Path) -> None:
    with running_broker(tmp_path, {"lc.plugins.path": str(folder)}) as broker:
        librdkafka.create(broker.address, "t", lc_validators="none")
        refused = answer(broker, "t", [Stored(0, NOW, None, b"x")])
        assert "has no method validate_batch" in (refused.error_message or "")


def test_one_that_needs_less_for_its_topic_gets_that(tmp_path: Path, folder: Path) -> None:
    with running_broker(tmp_path, {"lc.plugins.path": str(folder)}) as broker:
        for topic in ("t", "other"):
            librdkafka.create(broker.address, topic, lc_validators="narrow")
        refused = answer(broker, "t", [Stored(0, NOW, None, b"12345")])
        assert [error.batch_index_error_message for error in refused.record_errors] == ["begins with b'12'"]
        refused = answer(broker, "other", [Stored(0, NOW, None, b"12345")])
        assert "what it makes has 2 as its peek: it has to be a Peek" in (refused.error_message or "")


@pytest.mark.long
def test_the_command_line_shows_what_each_needs(folder: Path) -> None:
    def leafcuttr(*words: str) -> subprocess.CompletedProcess[str]:
        return run_leafcuttr(("plugins", *words, "-o", f"lc.plugins.path={folder}"))

    described = json.loads(leafcuttr("describe", "schemas", "--json").stdout)
    needs = {one["name"]: one["needs"] for one in described["produce_validators"]}
    assert needs == {
        "schemas": f"the first 5 bytes of values and the header {ID}",
        "small": "whole records",
        "none": "whether there are keys",
        "narrow": "the first 5 bytes of values",
    }
    assert "NEEDS" in leafcuttr("describe", "schemas").stdout


@pytest.mark.parametrize("peek", ["5", "Peek()", "Peek(value_bytes=-1)", "Peek(headers=['a'])"])
def test_a_spec_that_asks_for_nonsense_is_refused(peek: str) -> None:
    from types import ModuleType

    module = ModuleType("wrong")
    source = f"""
from leafcuttr_sdk import Peek, ProduceValidatorSpec

def leafcuttr_register_produce_validators():
    return [ProduceValidatorSpec("v", "is wrong", print, {peek})]
"""
    exec(source, vars(module))
    with pytest.raises(PluginError, match="as its peek: "):
        Hooks("wrong", module).call("leafcuttr_register_produce_validators")
