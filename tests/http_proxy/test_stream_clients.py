"""Streams by clients that people use: curl, and Node's EventSource and WebSocket."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import trio
import trio.testing

from leafcuttr_sdk import Record
from support.http_proxy import Running
from support.waiting import eventually

PATIENCE_S = 60
SWITCHES = ["--no-warnings", "--experimental-eventsource", "--experimental-websocket"]

EVENT_SOURCE = """
const [url, count] = process.argv.slice(1);
const source = new EventSource(url);
const seen = [];
source.onmessage = (event) => {
    seen.push(JSON.parse(event.data).value);
    if (seen.length === Number(count)) { console.log(JSON.stringify(seen)); process.exit(0); }
};
"""

WEB_SOCKET = """
const [url, count] = process.argv.slice(1);
const socket = new WebSocket(url);
const seen = [];
socket.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (message.type !== "records") return;
    for (const record of message.records) seen.push(record.value);
    if (seen.length === Number(count)) socket.close(1000, "enough");
    else socket.send(JSON.stringify({credits: message.records.length}));
};
socket.onclose = (event) => console.log(JSON.stringify([event.code, event.wasClean, seen]));
"""

FETCH = """
const [url] = process.argv.slice(1);
const answer = await fetch(url);
let text = "";
for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) text += piece;
console.log(JSON.stringify([answer.headers.get("content-type"), text.match(/^data: .*value.*$/gm).length]));
"""


def node() -> str:
    program = shutil.which("node")
    if program is None:
        pytest.skip("there is no Node")
    asked = [
        program,
        *SWITCHES,
        "-e",
        "if (!globalThis.EventSource || !globalThis.WebSocket) process.exit(1)",
    ]
    if subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip("this Node has no EventSource or no WebSocket")
    return program


async def run(*command: str) -> str:
    with trio.fail_after(PATIENCE_S):
        done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


async def fill(proxy: Running, count: int, start: int = 0) -> None:
    await proxy.view.produce_batch("t", [Record(b"%d" % number) for number in range(start, start + count)])


async def until_read(proxy: Running) -> None:
    """Wait until a stream is at the end of the topic."""

    def waits() -> bool:
        return any(each.log.waiters for each in proxy.core.topics.by_name["t"].partitions)

    await eventually(waits, "a stream that waits", seconds=PATIENCE_S)


async def test_curl(proxy: Running) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("there is no curl")
    await proxy.view.topics.create("t")
    await fill(proxy, 3)
    shown: list[str] = []

    async def listen() -> None:
        shown.append(await run(curl, "-sN", f"{proxy.url}/topics/t/stream?from=earliest"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await until_read(proxy)
        await fill(proxy, 1, 3)
        await trio.testing.wait_all_tasks_blocked(0.2)
        await proxy.view.topics.delete("t")
    events = [block for block in shown[0].split("\n\n") if "data: " in block]
    assert [json.loads(block.splitlines()[0].removeprefix("data: "))["value"] for block in events[:-1]] == [
        0,
        1,
        2,
        3,
    ]
    assert events[-1].startswith("event: end\n")


async def test_nodes_event_source(proxy: Running) -> None:
    program = node()
    await proxy.view.topics.create("t")
    await fill(proxy, 90)
    address = f"{proxy.url}/topics/t/stream?from=earliest"
    assert json.loads(await run(program, *SWITCHES, "-e", EVENT_SOURCE, address, "90")) == list(range(90))


@pytest.mark.long
async def test_nodes_web_socket_with_credits(proxy: Running) -> None:
    program = node()
    await proxy.view.topics.create("t")
    await fill(proxy, 1000)
    address = f"ws://127.0.0.1:{proxy.port}/topics/t/stream?from=earliest&credits=50"
    code, clean, seen = json.loads(await run(program, *SWITCHES, "-e", WEB_SOCKET, address, "1000"))
    assert (code, clean, seen) == (1000, True, list(range(1000)))


@pytest.mark.long
async def test_nodes_fetch(proxy: Running, tmp_path: Path) -> None:
    program = node()
    await proxy.view.topics.create("t")
    await fill(proxy, 3)
    shown: list[str] = []
    script = tmp_path / "fetch.mjs"
    script.write_text(FETCH.replace("process.argv.slice(1)", "process.argv.slice(2)"))

    async def listen() -> None:
        shown.append(await run(program, str(script), f"{proxy.url}/topics/t/stream?from=earliest"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await until_read(proxy)
        await trio.testing.wait_all_tasks_blocked(0.2)
        await proxy.view.topics.delete("t")
    assert json.loads(shown[0]) == ["text/event-stream", 3]
