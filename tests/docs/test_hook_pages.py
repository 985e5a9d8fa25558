"""The reference of the hooks equals the code, and the plugins on its pages do in a real broker what the pages say."""

from __future__ import annotations

import hmac
import inspect
import json
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException

from leafcuttr.plugins import registration
from leafcuttr_sdk import Operation, Principal, ResourceType, hooks
from leafcuttr_sdk.testing import (
    ContractError,
    Question,
    check_authenticator,
    check_authorizer,
    fixed_settings,
)
from support import librdkafka
from support.broker_process import BrokerProcess, clean_environ, running_broker
from support.commands import Ran
from support.forked_start import run_leafcuttr
from support.waiting import until

DOCS = Path(__file__).parents[2] / "docs"
PAGES = DOCS / "reference" / "hooks"


def page_of(hook: str) -> Path:
    return PAGES / f"{hook.removeprefix('leafcuttr_register_').replace('_', '-')}.md"


def signature(hook: str) -> str:
    return f"def {hook}{str(inspect.signature(getattr(hooks, hook))).replace(chr(39), '')}"


def example(page: Path) -> str:
    (block,) = re.findall(r"## Example\n\n```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert isinstance(block, str)
    return block


@pytest.mark.parametrize("hook", registration.RETURNS)
def test_a_page_has_the_hooks_signature_and_its_docstring(hook: str) -> None:
    text = page_of(hook).read_text(encoding="utf-8")
    first = text.split("```python\n")[1].split("\n```")[0]
    assert first == signature(hook)
    summary = inspect.getdoc(getattr(hooks, hook)) or ""
    assert f"\n\n{summary.partition('. ')[0].rstrip('.')}" in text
    for part in ("**Called** ", "**Returns** ", "**Then** "):
        assert f"\n{part}" in text
    assert f"def {hook}(" in example(page_of(hook))


def test_the_pages_are_those_of_the_hooks_and_all_are_listed() -> None:
    pages = {page_of(hook).name for hook in registration.RETURNS}
    assert {file.name for file in PAGES.glob("*.md")} == {*pages, "index.md"}
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[`(\w+)`\]\(([\w-]+\.md)\)", index, re.MULTILINE) == [
        (hook, page_of(hook).name) for hook in registration.RETURNS
    ]
    nav = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page for page in ("index.md", *sorted(pages)) if f"reference/hooks/{page}" not in nav] == []


# The examples at work


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples of all pages as they stand, as files for `lc.plugins.path`."""
    folder = tmp_path_factory.mktemp("examples")
    for page in sorted(PAGES.glob("*.md")):
        if page.name != "index.md":
            source = example(page)
            found = re.search(r'PLUGIN = Plugin\(\s*name="([a-z-]+)"', source)
            assert found is not None, page
            (folder / f"{found[1].replace('-', '_')}.py").write_text(source, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def broker(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {
        "lc.plugins.path": str(folder),
        "lc.plugins.strict": "true",
        "lc.plugin.greeting.enable": "true",
        "lc.plugin.greeting.times": "2",
    }
    with running_broker(tmp_path_factory.mktemp("broker"), settings) as broker:
        yield broker


def ask(broker: BrokerProcess, path: str) -> str:
    address = json.loads((broker.folder / "ready.json").read_text())["metrics"]
    with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as response:
        text: bytes = response.read()
        return text.decode()


def leafcuttr(folder: Path, *words: str, text: str = "") -> Ran:
    done = run_leafcuttr(
        words, stdin=text.encode(), environ=clean_environ({"KAFKA_LC_PLUGINS_PATH": str(folder)})
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def checks(broker: BrokerProcess) -> dict[str, dict[str, object]]:
    found = json.loads(ask(broker, "/health"))["checks"]
    assert isinstance(found, dict)
    return found


def test_all_are_on(folder: Path) -> None:
    rows = leafcuttr(folder, "plugins", "list", "--json", "-o", "lc.plugin.greeting.enable=true").json
    states = {row["name"]: (row["state"], row["why"]) for row in rows if row["distribution"] is None}
    assert states == dict.fromkeys(
        (file.stem.replace("_", "-") for file in folder.glob("*.py")), ("enabled", None)
    )
    assert len(states) == len(registration.RETURNS)


def test_settings(broker: BrokerProcess, folder: Path) -> None:
    assert checks(broker)["greeting:greeting"]["detail"] == "good morning, world good morning, world"
    librdkafka.alter(broker.address, "broker", "1", {"lc.plugin.greeting.name": "Ada"})
    assert "good morning, Ada" in str(checks(broker)["greeting:greeting"]["detail"])
    ran = leafcuttr(
        folder, "config", "describe", "lc.plugin.greeting.times", "-o", "lc.plugin.greeting.times=3"
    )
    assert "3 (-o)" in ran.out and "from 1 to 10" in ran.out


def test_topic_settings(broker: BrokerProcess) -> None:
    librdkafka.create(broker.address, "small", lc_validators="sizes", lc_plugin_sizes_max_value_bytes="3")
    now = int(time.time() * 1000)
    assert librdkafka.send(broker.address, "small", [b"abc"], timestamp=now) == [0]
    assert librdkafka.send(broker.address, "small", [b"abcd"], timestamp=now) != [1]
    librdkafka.alter(broker.address, "topic", "small", {"lc.plugin.sizes.max.value.bytes": "4"})
    assert librdkafka.send(broker.address, "small", [b"abcd"], timestamp=now) == [1]


def test_services(broker: BrokerProcess, folder: Path) -> None:
    assert checks(broker)["service:heartbeat"]["ok"] is True

    def has_a_record() -> bool:
        ran = leafcuttr(folder, "consume", "heartbeats", "--keys", "-b", broker.address)
        return ran.out.startswith("leafcuttr\talive\n")

    until(has_a_record, "a record of the service")


def test_record_filters(broker: BrokerProcess, folder: Path) -> None:
    librdkafka.create(broker.address, "paid", lc_filters="cards")
    now, number = int(time.time() * 1000), b"1234567812345678"
    librdkafka.send(broker.address, "paid", [b"paid with " + number, b"", b"in cash"], timestamp=now)
    librdkafka.send(broker.address, "paid", [b"as key"], key=number, timestamp=now)
    ran = leafcuttr(folder, "consume", "paid", "-b", broker.address)
    assert ran.out == "paid with ************5678\nin cash\n"
    letters = leafcuttr(folder, "consume", "paid.dlq", "--keys", "-b", broker.address).out
    assert letters == "************5678\tas key\n"


def test_produce_validators(broker: BrokerProcess, folder: Path) -> None:
    librdkafka.create(broker.address, "objects", lc_validators="json-objects")
    now = int(time.time() * 1000)
    assert librdkafka.send(broker.address, "objects", [b'{"a": 1}'], timestamp=now) == [0]
    refused = leafcuttr(folder, "produce", "objects", "-b", broker.address, text="[1]\n")
    assert refused.status == 1


@pytest.mark.long
def test_record_formats(broker: BrokerProcess, folder: Path) -> None:
    librdkafka.create(broker.address, "longs")
    sent = leafcuttr(folder, "produce", "longs", "--format", "long", "-b", broker.address, text="-5\n77\n")
    assert sent.status == 0, sent.err
    assert leafcuttr(folder, "consume", "longs", "--format", "long", "-b", broker.address).out == "-5\n77\n"
    assert leafcuttr(folder, "consume", "longs", "--format", "hex", "-b", broker.address).out.startswith(
        "f" * 15
    )
    wrong = leafcuttr(folder, "produce", "longs", "--format", "long", "-b", broker.address, text="five\n")
    assert wrong.status == 2 and "'five' is no whole number of 64 bits" in wrong.err
    words = ("perf", "produce", "-t", "made", "-n", "20", "--format", "long", "-b", broker.address)
    assert leafcuttr(folder, *words).status == 0
    made = leafcuttr(folder, "consume", "made", "--format", "long", "--keys", "-b", broker.address)
    assert len([line for line in made.out.splitlines() if re.fullmatch(r"\d{1,2}\t\d+", line)]) == 20


@pytest.mark.long
def test_schema_formats(folder: Path) -> None:
    ran = leafcuttr(folder, "plugins", "describe", "columns", "--json")
    assert ran.json["schema_formats"] == [{"name": "COLUMNS", "summary": "the head of a CSV file"}]
    done = leafcuttr(folder, "plugins", "check", str(folder / "columns.py"))
    assert (done.status, "schema format COLUMNS: ok" in done.out) == (0, True), done.out


@pytest.mark.long
def test_schema_provider(folder: Path) -> None:
    ran = leafcuttr(folder, "plugins", "describe", "shelf")
    assert re.search(
        r"^schema provider\nATTRIBUTE +SUMMARY\nBroker\.schemas +where plugins", ran.out, re.M
    ), ran
    described = leafcuttr(folder, "plugins", "describe", "shelf", "--json").json
    assert [each["attribute"] for each in described["schema_provider"]] == ["Broker.schemas"]
    done = leafcuttr(folder, "plugins", "check", str(folder / "shelf.py"))
    assert (done.status, "schema provider Shelf: ok" in done.out) == (0, True), done.out


@pytest.mark.long
def test_cli_commands(broker: BrokerProcess, folder: Path) -> None:
    librdkafka.create(broker.address, "heavy")
    librdkafka.send(broker.address, "heavy", [b"x" * 100_000], timestamp=int(time.time() * 1000))
    ran = leafcuttr(folder, "largest", str(broker.data), "--count", "1")
    assert (ran.status, ran.out.splitlines()[0].split()) == (0, ["BYTES", "PARTITION"])
    assert ran.out.splitlines()[1].split()[1] == "heavy-0"
    (found,) = leafcuttr(folder, "largest", str(broker.data), "--count", "1", "--json").json
    assert found["partition"] == "heavy-0" and found["bytes"] > 100_000
    nowhere = leafcuttr(folder, "largest", "/nowhere")
    assert nowhere == Ran(1, "", "leafcuttr: /nowhere is no directory\n")


def test_health_checks(broker: BrokerProcess) -> None:
    found = checks(broker)["crowd:crowd"]
    assert found["ok"] is True and "at most 5000" in str(found["detail"])


def test_metrics(broker: BrokerProcess) -> None:
    librdkafka.create(broker.address, "counted", 3)
    assert 'leafcuttr_census_partitions{topic="counted"} 3' in ask(broker, "/metrics")


def test_admin_routes(broker: BrokerProcess) -> None:
    librdkafka.create(broker.address, "shown")
    assert json.loads(ask(broker, "/plugins/directory/topics?start=sh")) == ["shown"]
    assert "/plugins/directory/topics" in ask(broker, "/")
    assert json.loads(ask(broker, "/plugins/directory/topics/shown"))["name"] == "shown"
    with pytest.raises(urllib.error.HTTPError) as missing:
        ask(broker, "/plugins/directory/topics/no%2Fsuch")
    assert missing.value.code == 404
    page = page_of("leafcuttr_register_admin_routes").read_text(encoding="utf-8")
    for path, status in (("/subjects/%zz", 400), ("/plugins/directory/topics/%00", 400), ("/nowhere", 404)):
        assert f" {status}" in page
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(broker, path)
        assert refused.value.code == status


def test_authenticators(tmp_path: Path) -> None:
    page = PAGES / "authenticators.md"
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "one_token.py").write_text(example(page), encoding="utf-8")
    settings = {
        "lc.plugins.path": str(tmp_path / "plugins"),
        "lc.plugins.strict": "true",
        "lc.plugin.one-token.token": "sesame",
        "lc.http.proxy.enable": "true",
        "lc.http.proxy.port": "0",
        "lc.http.proxy.auth": "bearer",
        "lc.http.proxy.authenticators": "one-token",
    }
    with running_broker(tmp_path / "broker", settings) as broker:
        listeners = json.loads((broker.folder / "ready.json").read_text())["plugin_listeners"]
        url = f"http://{listeners['lc.http.proxy']}/topics"
        request = urllib.request.Request(url, headers={"authorization": "Bearer sesame"})
        with urllib.request.urlopen(request, timeout=60) as response:
            assert json.loads(response.read()) == []
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url, timeout=60)
        assert refused.value.code == 401
        assert refused.value.headers["www-authenticate"] == 'Bearer realm="leafcuttr"'


def test_an_exchange_of_steps(tmp_path: Path) -> None:
    """The second plugin of the page: its line protocol over a socket, and its authenticator by the testing kit."""
    text = (PAGES / "authenticators.md").read_text(encoding="utf-8").partition("## An exchange of steps")[2]
    (source,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "porter.py").write_text(source, encoding="utf-8")

    def say(address: str, name: str, secret: bytes) -> str:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as sock, sock.makefile("rw") as file:
            proof = hmac.digest(secret, file.readline().strip().encode(), "sha256").hex()
            file.write(f"{name} {proof}\n")
            file.flush()
            return file.readline()

    prefix = "lc.plugin.porter"
    settings = {
        "lc.plugins.path": str(tmp_path),
        "lc.plugins.strict": "true",
        f"{prefix}.auth": "sasl",
        f"{prefix}.secret.alice": "sesame",
    }
    with running_broker(tmp_path / "broker", settings) as broker:
        address = json.loads((broker.folder / "ready.json").read_text())["plugin_listeners"][prefix]
        assert say(address, "alice", b"sesame") == "you are User:alice\n"
        for name, secret in (("alice", b"wrong"), ("bob", b"sesame"), ("bob", b""), ("", b"")):
            assert say(address, name, secret) == ""

    found: dict[str, Any] = {}
    exec(compile(source, "porter.py", "exec"), found)
    given = fixed_settings(found["leafcuttr_register_settings"](), {f"{prefix}.secret.alice": "sesame"})
    (spec,) = found["leafcuttr_register_authenticators"](SimpleNamespace(settings=given))

    def client(challenge: bytes | None) -> bytes:
        return (challenge and b"alice " + hmac.digest(b"sesame", challenge, "sha256").hex().encode()) or b""

    check_authenticator(spec, clients={"CRAM-SHA256": lambda: client})
    with pytest.raises(ContractError, match="accepts: it answers Refused"):
        check_authenticator(spec, clients={"CRAM-SHA256": lambda: lambda challenge: b"alice 0"})


@pytest.mark.long
def test_authorizers(folder: Path, tmp_path: Path) -> None:
    described = leafcuttr(folder, "plugins", "describe", "own-topics", "--json").json
    assert [each["name"] for each in described["authorizers"]] == ["own-topics"]
    source = example(PAGES / "authorizers.md")
    (tmp_path / "own_topics.py").write_text(source, encoding="utf-8")
    settings = {"lc.plugins.path": str(tmp_path), "lc.authorizer": "own-topics"}
    with running_broker(tmp_path / "broker", settings) as broker:
        librdkafka.create(broker.address, "ANONYMOUS.mine")
        for topic in ("alice.hers", "nobodys"):
            with pytest.raises(KafkaException) as refused:
                librdkafka.create(broker.address, topic)
            assert refused.value.args[0].name() == "TOPIC_AUTHORIZATION_FAILED"

    found: dict[str, Any] = {}
    exec(compile(source, "own_topics.py", "exec"), found)
    (spec,) = found["leafcuttr_register_authorizers"]()
    alice = Principal("User", "alice")

    def of(topic: str) -> Question:
        return Question(alice, Operation.WRITE, ResourceType.TOPIC, topic)

    given: Any = None
    check_authorizer(spec, given, allows=[of("alice.hers")], denies=[of("bob.his"), of("nobodys")])
    with pytest.raises(ContractError, match="allows"):
        check_authorizer(spec, given, allows=[of("bob.his")])
