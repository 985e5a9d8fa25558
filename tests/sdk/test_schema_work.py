"""Data of a schema that needs a worker, decoded and encoded in one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr.embedded import open_broker
from leafcuttr_registry.json_schema.schema import parse
from leafcuttr_sdk import schema_work
from leafcuttr_sdk.schema_work import WorkerCodec, WorkTime
from leafcuttr_sdk.schemas import DataError, ResolvedReference

BUSY = '{"type":"string","pattern":"^(a+)+$"}'


async def worked(tmp_path: Path, work: Callable[[Any], Any]) -> Any:
    settings: dict[str, Any] = {
        "log.dirs": str(tmp_path),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
    }
    async with open_broker(settings) as broker:
        return await trio.to_thread.run_sync(work, broker)


async def test_values_go_both_ways(tmp_path: Path) -> None:
    def work(broker: Any) -> None:
        codec = WorkerCodec(broker, parse(BUSY, {}), (0,), WorkTime())
        assert codec.decode(b'"aa"') == "aa" and codec.encode("aa") == b'"aa"'
        codec.check(b'"aa"')
        for call, wrong in ((codec.decode, b'"b"'), (codec.check, b"{"), (codec.encode, "b")):
            with pytest.raises(DataError):
                call(wrong)  # type: ignore[operator]
        referring = parse('{"$ref":"other"}', {"other": ResolvedReference(BUSY, {})})
        assert WorkerCodec(broker, referring, (0,), WorkTime()).decode(b'"aa"') == "aa"

    await worked(tmp_path, work)


@pytest.mark.long
async def test_what_takes_long_is_refused_and_no_more_than_the_time_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = b'"' + b"a" * 60 + b'!"'

    def work(broker: Any) -> None:
        time = WorkTime()
        codec = WorkerCodec(broker, parse(BUSY, {}), (0,), time)
        with pytest.raises(DataError, match=r"takes longer than 0\.5 s"):
            codec.check(busy)
        assert time.left_s <= schema_work.TOGETHER_S - schema_work.EACH_S
        assert codec.decode(b'"aa"') == "aa"
        time.left_s = 0.2
        with pytest.raises(DataError, match=r"takes longer than 0\.2 s"):
            codec.decode(busy)
        with pytest.raises(DataError, match="the values before it have used up the time"):
            codec.decode(b'"aa"')

    await worked(tmp_path, work)


async def test_a_process_that_cannot_have_it_says_so(tmp_path: Path) -> None:
    class Unsendable:
        def __reduce__(self) -> Any:
            raise TypeError("is not sent")

    def work(broker: Any) -> None:
        unsendable: Any = Unsendable()
        with pytest.raises(DataError, match=r"it cannot be checked by its schema: .*is not sent"):
            WorkerCodec(broker, unsendable, (0,), WorkTime()).decode(b"")

    await worked(tmp_path, work)
