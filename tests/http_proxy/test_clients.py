"""Clients that people use, on a broker in a process of its own: curl with the manual's lines, Node's fetch, and a
Kafka client that reads what they sent."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from leafcuttr_sdk.testing import check_service
from support.broker_process import BrokerProcess, running_broker

PATIENCE_S = 120
ENVIRON = {"KAFKA_LC_HTTP_PROXY_ENABLE": "true", "KAFKA_LC_HTTP_PROXY_PORT": "0"}

NODE = """
const [url] = process.argv.slice(1);
const post = async (body, headers) => {
    const answer = await fetch(url + '/topics/node', {method: 'POST', body, headers});
    return [answer.status, await answer.text()];
};
const lines = new Blob(['{"value":1}\\n', '{"value":2}\\n']);
const json = {'content-type': 'application/json'};
console.log(JSON.stringify([
    await post(JSON.stringify({records: [{key: 'k', value: {from: 'node'}}]}), json),
    await post(lines.stream(), {'content-type': 'application/x-ndjson'}).catch(() => 0),
    await post('nothing', json),
    await (await fetch(url + '/topics/node/partitions/0/offsets')).json(),
]));
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("clients"), environ=ENVIRON) as found:
        yield found


@pytest.fixture
def url(broker: BrokerProcess) -> str:
    return f"http://{proxy_of(broker)}"


def proxy_of(broker: BrokerProcess) -> str:
    """`host:port`."""
    ready = json.loads((broker.folder / "ready.json").read_text())
    return str(ready["plugin_listeners"]["lc.http.proxy"])


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_manuals_lines(broker: BrokerProcess, url: str) -> None:
    answer = run(
        "curl", "-s", "-X", "POST",
        "-H", "Content-Type: application/json",
        "-H", "Accept: application/json",
        "-d", '{"records":[{"key":"someKeyText", "value":{"name": "testUser"}}, '
        '{"key":"someKeyText", "value":{"name": "testUser2"}}]}',
        f"{url}/topics/jsontest",
    )  # fmt: skip
    assert json.loads(answer) == {
        "offsets": [
            {"partition": 0, "offset": offset, "error_code": None, "error": None} for offset in (0, 1)
        ],
        "value_schema_id": None,
        "key_schema_id": None,
    }
    kafka = pytest.importorskip("kafka")
    consumer = kafka.KafkaConsumer(
        "jsontest",
        bootstrap_servers=broker.address,
        auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE_S * 1000,
    )
    try:
        got = [(record.key, record.value) for _, record in zip(range(2), consumer, strict=False)]
    finally:
        consumer.close()
    assert got == [(b"someKeyText", b'{"name":"testUser"}'), (b"someKeyText", b'{"name":"testUser2"}')]


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_curl_uploads_lines_after_100_continue(url: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("".join(f'{{"key":"{number}","value":"{"x" * 50}"}}\n' for number in range(20_000)))
    answer = run(
        "curl", "-sS", "-H", "Content-Type: application/x-ndjson", "--data-binary", f"@{lines}",
        f"{url}/topics/lines",
    )  # fmt: skip
    offsets = [json.loads(line)["offset"] for line in answer.splitlines()]
    assert offsets == list(range(20_000))
    large = tmp_path / "large"
    large.write_bytes(b" " * 20_000_000)
    answer = run(
        "curl", "-sS", "-H", "Content-Type: application/json", "--data-binary", f"@{large}", f"{url}/topics/t"
    )
    assert json.loads(answer)["error_code"] == 413


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_curl_speaks_http_2(url: str) -> None:
    if "HTTP2" not in run("curl", "--version"):
        pytest.skip("this curl has no HTTP/2")
    told = run(
        "curl", "-sS", "--http2-prior-knowledge", "-w", "%{http_version}", "-H", "Content-Type: application/json",
        "-d", '{"records":[{"value":1}]}', f"{url}/topics/two",
    )  # fmt: skip
    assert told.endswith("}2") and '"offset":0' in told


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_nodes_fetch(url: str) -> None:
    posted, _, refused, offsets = json.loads(run("node", "--input-type=module", "-e", NODE, "--", url))
    assert posted[0] == 200 and json.loads(posted[1])["offsets"][0]["offset"] == 0
    assert refused[0] == 400 and json.loads(refused[1])["error_code"] == 400
    assert offsets["end_offset"] >= 1


def test_httpx_keeps_its_connection(url: str) -> None:
    with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        for number in range(50):
            answer = client.post("/topics/httpx", json={"records": [{"value": number}]})
            assert answer.json()["offsets"][0]["offset"] == number


def test_a_stop_answers_what_is_under_way_and_leaves_no_mark(tmp_path: Path) -> None:
    with running_broker(tmp_path, environ=ENVIRON) as broker:
        host, _, port = proxy_of(broker).rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as half:
            body = b'{"records":[{}]}'
            half.sendall(
                b"POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Expect: 100-continue\r\nContent-Length: 16\r\n\r\n"
            )
            assert half.recv(100).startswith(b"HTTP/1.1 100 ")
            broker.process.send_signal(signal.SIGTERM)
            half.sendall(body)
            answer = b""
            while data := half.recv(4096):
                answer += data
        assert answer.startswith(b"HTTP/1.1 200 ") and b'"offset":0' in answer
        broker.ended = True  # told once: a second signal would end it at once
        assert broker.process.wait(PATIENCE_S) == 0
        assert "ERROR" not in broker.log and "Traceback" not in broker.log


def test_the_service_keeps_the_contract() -> None:
    import leafcuttr_http

    (spec,) = leafcuttr_http.leafcuttr_register_services()
    check_service(spec, plugin=leafcuttr_http, settings={"lc.http.proxy.port": 0})
