"""Filters and validators see what plugins produce and what is produced over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr.config.topic import TopicConfig
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.chains import Instance, Tables
from leafcuttr_sdk import DROP, BrokerError, DeadLetter, ErrorCode, NewBatch, Plugin, Produced, Record
from leafcuttr_sdk.types import TopicPartition
from support import librdkafka
from support.broker_process import running_broker
from support.live_broker import live_broker
from support.logs import batch


def sort(record: Record) -> Any:
    what = (record.value or b" ")[:1]
    if what == b"f":
        raise ValueError(what)
    return {b"d": DROP, b"l": DeadLetter("an l")}.get(what, record)


def short(record: Record) -> str | None:
    return "too long" if len(record.value or b"") > 3 else None


def made(call: Any) -> Any:
    def make(_: str, __: TopicConfig) -> Instance:
        return Instance("tests", call)

    return make


def test_what_plugins_produce(tmp_path: Path) -> None:
    with live_broker(tmp_path) as live:
        live.call(live.broker.chains.equip, Tables({"sort": made(sort)}, {"short": made(short)}))
        view = make_broker_view(live.broker, Plugin("p", 1, "Produces."))
        config = {"lc.filters": "sort", "lc.validators": "short"}

        async def produce() -> None:
            await view.topics.create("t", partitions=1, configs=config)
            with pytest.raises(BrokerError, match="no record filter sord; did you mean sort"):
                await view.topics.create("u", configs={"lc.filters": "sord"})
            answers = await view.produce_batch("t", [Record(value) for value in (b"k", b"d", b"l", b"k")])
            assert [one.offset if isinstance(one, Produced) else one for one in answers] == [0, 1, 2, 3]
            refused = await view.produce_batch("t", [Record(b"k"), Record(b"kkkk")])
            assert [one.code for one in refused if isinstance(one, BrokerError)] == [
                ErrorCode.INVALID_RECORD
            ] * 2
            assert str(refused[1]) == "too long"
            with pytest.raises(BrokerError, match="The record filter sort of topic t failed"):
                await view.produce("t", b"f")
            (raw,) = await view.append([NewBatch(TopicPartition("t", 0), bytes(batch(3, size=1)))])
            assert not isinstance(raw, BrokerError)
            assert raw.base_offset == 4
            # Many at once, of which each waits for its dead letters.
            async with trio.open_nursery() as nursery:
                for _ in range(50):
                    nursery.start_soon(view.produce, "t", b"l")
            assert live.broker.dead_letters.written == {"t.dlq": 51}

        live.run(produce)
        assert len(librdkafka.read(live.address, "t.dlq", 51)) == 51
        assert [m.offset() for m in librdkafka.read(live.address, "t", 5)] == [0, 3, 4, 5, 6]
        assert librdkafka.watermarks(live.address, "t") == (0, 57)


@pytest.mark.long
def test_what_comes_over_http(tmp_path: Path, plugins: Path) -> None:
    pytest.importorskip("quart_trio")
    settings = {"lc.plugins.path": str(plugins), "lc.http.proxy.enable": "true", "lc.http.proxy.port": "0"}
    with running_broker(tmp_path, settings) as broker:
        librdkafka.create(broker.address, "t", lc_filters="mask", lc_validators="short")
        librdkafka.alter(broker.address, "broker", "1", {"lc.plugin.sieve.most": "20"})
        ready = json.loads((broker.folder / "ready.json").read_text())
        address = next(value for name, value in _flat(ready) if "http" in name)

        def post(*found: str) -> tuple[int, Any]:
            body = json.dumps({"records": [{"value": value} for value in found]}).encode()
            request = urllib.request.Request(
                f"http://{address}/topics/t", body, {"Content-Type": "application/json"}
            )
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    return response.status, json.load(response)
            except urllib.error.HTTPError as error:
                return error.code, json.load(error)

        assert post("my secret", "open")[0] == 200
        status, answer = post("x" * 40)
        assert "longer than 20 bytes" in json.dumps([status, answer])
        assert [m.value() for m in librdkafka.read(broker.address, "t", 2)] == [b'"my ******"', b'"open"']


def _flat(found: Any, name: str = "") -> list[tuple[str, str]]:
    if isinstance(found, dict):
        return [pair for key, value in found.items() for pair in _flat(value, f"{name}.{key}")]
    return [(name, str(found))]
