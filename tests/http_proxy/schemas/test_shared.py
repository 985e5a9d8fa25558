"""Codecs that are lent, and the work in threads."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

import pytest
import trio

from leafcuttr_http.schemas import shared
from leafcuttr_http.schemas.shared import Codecs, Schemas
from leafcuttr_registry.avro.format import AvroFormat
from support.http_proxy import Running
from support.http_schemas import schemas_of


def test_a_codec_is_lent_to_one_at_a_time() -> None:
    schema = AvroFormat().parse('"int"', {})
    codecs = Codecs()
    with codecs.lent(1, schema, (0,)) as first, codecs.lent(1, schema, (0,)) as second:
        assert first is not second
    with codecs.lent(1, schema, (0,)) as third, codecs.lent(1, schema, (0,)) as fourth:
        assert {id(third), id(fourth)} == {id(first), id(second)}
    # Another schema under the same id, another id, another message: codecs of their own.
    other = AvroFormat().parse('"string"', {})
    with codecs.lent(1, other, (0,)) as of_other, codecs.lent(2, schema, (0,)) as of_id:
        assert of_other.decode(b"\x02a") == "a"
        assert len({id(each) for each in (first, second, of_other, of_id)}) == 4
    with codecs.lent(1, other, (0,)) as kept:
        assert kept is of_other
    with codecs.lent(1, other, (1,)) as of_message:
        assert of_message is not of_other


def test_few_codecs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_SCHEMAS", 2)
    schema = AvroFormat().parse('"int"', {})
    codecs = Codecs()
    made = []
    for key in (1, 2, 1, 3):
        with codecs.lent(key, schema, (0,)) as codec:
            made.append(codec)
    assert made[2] is made[0]
    with codecs.lent(1, schema, (0,)) as codec:
        assert codec is made[0]
    with codecs.lent(2, schema, (0,)) as codec:
        assert codec is not made[1]


async def test_work_is_done_in_a_thread_and_raises_what_its_steps_raise(proxy: Running) -> None:
    schemas = Schemas(proxy.broker)
    threads = []

    def steps(count: int) -> Generator[None, None, None]:
        for _ in range(count):
            threads.append(threading.current_thread())
            yield
        raise ValueError("at the end")

    with pytest.raises(ValueError, match="at the end"):
        await schemas.work(steps(3))
    assert len(threads) == 3 and threading.main_thread() not in threads


async def test_work_that_is_cancelled_ends_between_two_steps(proxy: Running) -> None:
    schemas = Schemas(proxy.broker)
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()
    done = []

    def steps() -> Generator[None, None, None]:
        try:
            for number in range(1000):
                done.append(number)
                begun.set()
                go.wait(30)
                yield
        finally:
            ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(schemas.work, steps())
        assert await trio.to_thread.run_sync(begun.wait, 30)
        nursery.cancel_scope.cancel()
    go.set()
    assert await trio.to_thread.run_sync(ended.wait, 30)
    assert done == [0]


async def test_what_is_missing_is_asked_for_again_after_a_moment(proxy: Running) -> None:
    schemas: Any = Schemas(proxy.broker)
    assert schemas_of(proxy).get(5) is None and not schemas.is_missing(5)
    schemas.missing(5)
    assert schemas.is_missing(5) and not schemas.is_missing(6)
    schemas._missing[5] = proxy.broker.clock.monotonic()
    assert not schemas.is_missing(5)
    for number in range(3000):
        schemas.missing(number)
    assert len(schemas._missing) <= 1000
