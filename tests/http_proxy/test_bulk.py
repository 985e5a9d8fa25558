"""Bulk uploads: a record a line, an answer a line."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_http.bulk import _Lines
from leafcuttr_http.errors import ApiError
from leafcuttr_sdk import Record
from support.http_proxy import Running, running

LINES = "application/x-ndjson"


def lines_of(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


async def post(proxy: Running, content: Any, path: str = "/topics/t", **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with proxy.client() as client:
        return await client.post(path, content=content, headers={"content-type": LINES, **named})


async def test_an_answer_for_each_line(proxy: Running) -> None:
    body = (
        b'{"key":"a","value":1}\n{"value":\n\n{"value":2,"oops":1}\r\n{"value":{"x":[1]},"headers":{"h":"1"}}'
    )
    answer = await post(proxy, body)
    assert (answer.status_code, answer.headers["content-type"]) == (200, LINES)
    first, broken, unknown, last = lines_of(answer.text)
    assert first == {"partition": 0, "offset": 0, "error_code": None, "error": None}
    assert broken["error_code"] == 400 and broken["error"].startswith("Line 2: It is not JSON")
    assert unknown["error_code"] == 42206 and unknown["error"].startswith("Line 4: has no member 'oops'")
    assert last == {"partition": 0, "offset": 1, "error_code": None, "error": None}
    assert await proxy.records("t") == [(b"a", b"1"), (None, b'{"x":[1]}')]
    assert await proxy.counted("leafcuttr_http_records_produced_total", format="lines") == 2


async def test_lines_are_answered_while_the_upload_goes_on(proxy: Running) -> None:
    async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream:
        head = f"POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Type: {LINES}\r\nTransfer-Encoding: chunked\r\n\r\n"
        await stream.send_all(head.encode())
        got = b""
        for number in range(3):
            line = b'{"value":%d}\n' % number
            await stream.send_all(b"%x\r\n%s\r\n" % (len(line), line))
            with trio.fail_after(30):
                while b'"offset":%d,' % number not in got:
                    got += await stream.receive_some(65536)
        await stream.send_all(b"0\r\n\r\n")
        with trio.fail_after(30):
            while not got.endswith(b"0\r\n\r\n"):
                got += await stream.receive_some(65536)


async def test_many_lines_to_one_partition_and_compressed(proxy: Running) -> None:
    await proxy.broker.topics.create("t", partitions=2)
    body = b"".join(b'{"key":"%d","value":"%s"}\n' % (number, b"x" * 200) for number in range(5000))
    answer = await post(proxy, gzip.compress(body), "/topics/t/partitions/1", content_encoding="gzip")
    answers = lines_of(answer.text)
    assert [line["offset"] for line in answers] == list(range(5000))
    assert {line["partition"] for line in answers} == {1}


async def test_what_is_wrong_before_the_first_line(tmp_path: Path) -> None:
    async with running(tmp_path / "data", broker={"auto.create.topics.enable": "false"}) as proxy:
        for headers, status in (
            ({}, 404),
            ({"accept": "text/html"}, 406),
            ({"idempotency_key": "k"}, 422),
            ({"content_encoding": "br"}, 415),
        ):
            answer = await post(proxy, b'{"value":1}\n', **headers)
            assert answer.status_code == status, answer.text
        assert (await post(proxy, b'{"value":1}\n', "/topics/t/partitions/0")).status_code == 404
        answer = await post(proxy, b"not gzip", content_encoding="gzip")
        assert answer.status_code == 400


async def test_an_empty_upload(proxy: Running) -> None:
    answer = await post(proxy, b"")
    assert (answer.status_code, answer.text) == (200, "")


async def test_a_line_that_is_too_long_costs_no_other_client_anything(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"max.record.bytes": 2000}) as proxy:
        answer = await post(proxy, b'{"value":1}\n{"value":"' + b"x" * 300_000 + b'"}\n{"value":2}\n')
        first, long, last = lines_of(answer.text)
        assert (first["offset"], long["error_code"], last["offset"]) == (0, 413, 1)
        assert long["error"].startswith("Line 2 has more than 2000 bytes")


async def test_a_client_that_falls_silent_is_told_and_disconnected(tmp_path: Path) -> None:
    async def lines() -> AsyncIterator[bytes]:
        yield b'{"value":1}\n{"value":2}'
        await trio.sleep_forever()

    async with running(tmp_path / "data", {"request.timeout.ms": 400}) as proxy:
        with trio.fail_after(30):
            stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
            async with stream:
                head = f"POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Type: {LINES}\r\nContent-Length: 99\r\n\r\n"
                await stream.send_all(head.encode() + b'{"value":1}\n{"value":2}')
                got = b""
                while data := await stream.receive_some(65536):
                    got += data
        assert b'"offset":0' in got and b'"error_code":408' in got


async def test_memory_is_bounded_where_answers_are_not_taken(tmp_path: Path) -> None:
    """The client sends for ever and reads nothing: it is not read any more, and cut in the end."""
    async with running(tmp_path / "data", {"request.timeout.ms": 300}) as proxy:
        sent = 0
        with trio.fail_after(60):
            stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
            async with stream:
                head = f"POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Type: {LINES}\r\n"
                head += "Transfer-Encoding: chunked\r\n\r\n"
                await stream.send_all(head.encode())
                chunk = b'{"value":1}\n' * 1000
                with pytest.raises(trio.BrokenResourceError):
                    while True:
                        await stream.send_all(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                        sent += 1000
        assert sent


@given(st.lists(st.sampled_from([b'{"value":1}', b"", b"x", b"  ", b'"' + b"y" * 60 + b'"'])), st.data())
def test_lines_do_not_depend_on_how_the_bytes_come(lines: list[bytes], data: st.DataObject) -> None:
    body = b"\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    got: list[Any] = []
    cutter = _Lines(50)
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        for piece in cutter.feed(body[start:end]):
            got += piece
    for piece in cutter.end():
        got += piece
    expected = [line for line in lines if line.strip()]
    assert len(got) == len(expected)
    for line, found in zip(expected, got, strict=True):
        if line == b'{"value":1}':
            assert found == (Record(b"1"), None)
        else:
            assert isinstance(found, ApiError)
            assert found.code == (413 if len(line) > 50 else 400)
