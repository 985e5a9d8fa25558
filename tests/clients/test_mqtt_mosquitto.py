"""mosquitto_pub, mosquitto_sub and mosquitto_rr."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from support.mqtt_broker import MAPPED, MqttBroker
from support.mqtt_duties import AWAY, MESSAGES, SHARED
from support.waiting import until

Fresh = Callable[[str], str]
PATIENCE_S = 60
pytestmark = [
    pytest.mark.client("mosquitto_pub, mosquitto_sub"),
    pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="not installed: mosquitto_sub"),
]
READY = "Subscribed (mid:"
"""What mosquitto_sub says with --debug once the broker has answered."""


class Tools:
    def __init__(self, broker: MqttBroker, protocol: str) -> None:
        self._at = ("-h", broker.host, "-p", str(broker.port), "-V", protocol)
        self.protocol = protocol

    def pub(self, *words: str, given: str | None = None) -> None:
        """Fails the test when it fails."""
        done = subprocess.run(
            ["mosquitto_pub", *self._at, *words],
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr

    @contextmanager
    def sub(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A subscriber that has its subscription; `lines` has what it prints till its end."""
        command = ["stdbuf", "-oL", "mosquitto_sub", *self._at, "-d", *words]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                assert process.stdout
                for line in process.stdout:
                    if line.startswith(READY):
                        break
                yield process
            finally:
                process.kill()

    def ready(self, *words: str) -> list[str]:
        """What a subscriber prints that ends by itself (-C, -E)."""
        done = subprocess.run(
            ["mosquitto_sub", *self._at, *words], capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def lasting(self) -> tuple[str, ...]:
        """For a session that outlives its connection."""
        return ("-c", "-x", "300") if self.protocol == "mqttv5" else ("-c",)


def messages(process: subprocess.Popen[str]) -> list[str]:
    """What it printed till its end, without its own lines."""
    out, _ = process.communicate(timeout=PATIENCE_S)
    return [line for line in out.splitlines() if line.startswith("> ")]


@pytest.fixture(params=["mqttv31", "mqttv311", "mqttv5"])
def tools(request: pytest.FixtureRequest, mqtt_broker: MqttBroker) -> Tools:
    return Tools(mqtt_broker, request.param)


@pytest.mark.duty("connect", "QoS 0", "QoS 1", "QoS 2")
def test_each_quality_of_service(tools: Tools, fresh: Fresh) -> None:
    base = f"{MAPPED}/{fresh('qos')}"
    given = "".join(f"{number}\n" for number in range(MESSAGES))
    with tools.sub("-q", "2", "-t", f"{base}/+", "-C", str(3 * MESSAGES), "-F", "> %t %q %r %p") as listener:
        for qos in range(3):
            tools.pub("-t", f"{base}/{qos}", "-q", str(qos), "-l", given=given)
        assert messages(listener) == [
            f"> {base}/{qos} {qos} 0 {number}" for qos in range(3) for number in range(MESSAGES)
        ]


@pytest.mark.duty("retained")
def test_retained(tools: Tools, fresh: Fresh) -> None:
    topic = f"{MAPPED}/{fresh('retained')}"
    for text in ("first", "last"):
        tools.pub("-t", topic, "-q", "1", "-r", "-m", text)
    assert tools.ready("-t", topic, "-C", "1", "-F", "%r %p") == ["1 last"]
    tools.pub("-t", topic, "-q", "1", "-r", "-n")
    assert tools.ready("-t", topic, "-E", "-F", "%r %p") == []


@pytest.mark.duty("will")
def test_will(tools: Tools, fresh: Fresh) -> None:
    topic = f"{MAPPED}/{fresh('will')}"
    with tools.sub("-t", topic, "-q", "1", "-C", "1", "-F", "> %p") as witness:
        will = ("--will-topic", topic, "--will-qos", "1", "--will-payload", "broken")
        with tools.sub("-t", "unused", *will) as broken:
            broken.kill()
        assert messages(witness) == ["> broken"]


@pytest.mark.duty("session resume")
def test_a_session_is_resumed(tools: Tools, fresh: Fresh) -> None:
    topic, name = f"{MAPPED}/{fresh('resumed')}", fresh("lasting")
    mine = ("-i", name, "-t", topic, "-q", "2", *tools.lasting())
    tools.ready(*mine, "-E")
    sent = [f"{qos}-{number}" for qos in (1, 2) for number in range(AWAY)]
    for qos in (1, 2):
        given = "".join(f"{text}\n" for text in sent if text[0] == str(qos))
        tools.pub("-t", topic, "-q", str(qos), "-l", given=given)
    assert tools.ready(*mine, "-C", str(len(sent))) == sent


@pytest.mark.duty("shared subscription")
def test_a_shared_subscription(tools: Tools, fresh: Fresh) -> None:
    topic = f"{MAPPED}/{fresh('shared')}"
    mine = ("-t", f"$share/both/{topic}", "-q", "1", "-C", str(SHARED // 2), "-F", "> %p")
    with tools.sub(*mine) as one, tools.sub(*mine) as other:
        tools.pub("-t", topic, "-q", "1", "-l", given="".join(f"{number}\n" for number in range(SHARED)))
        found = [messages(one), messages(other)]
    # Each gets every other one: both end by themselves.
    assert sorted(int(text.removeprefix("> ")) for each in found for text in each) == list(range(SHARED))


@pytest.mark.duty("properties")
def test_properties(mqtt_broker: MqttBroker, fresh: Fresh) -> None:
    tools, topic = Tools(mqtt_broker, "mqttv5"), f"{MAPPED}/{fresh('properties')}"
    given = {
        "content-type": "application/json",
        "response-topic": "answers",
        "message-expiry-interval": "300",
    }
    words = [word for name, value in given.items() for word in ("-D", "publish", name, value)]
    users = [
        word for value in ("celsius", "kelvin") for word in ("-D", "publish", "user-property", "unit", value)
    ]
    with tools.sub("-t", topic, "-C", "1", "-F", "> %j") as listener:
        tools.pub("-t", topic, "-m", "{}", *words, *users)
        (line,) = messages(listener)
    found = json.loads(line.removeprefix("> "))
    assert found["payload"] == "{}"
    properties = found["properties"]
    assert properties["content-type"] == "application/json"
    assert properties["response-topic"] == "answers"
    assert 200 < int(properties["message-expiry-interval"]) <= 300


def test_a_question_and_its_answer(mqtt_broker: MqttBroker, fresh: Fresh) -> None:
    """mosquitto_rr asks with a response topic; somebody who listens answers there."""
    base = f"{MAPPED}/{fresh('rr')}"
    tools = Tools(mqtt_broker, "mqttv5")
    with tools.sub("-t", f"{base}/question", "-C", "1", "-F", "> %R %p") as listener:
        at = ("-h", mqtt_broker.host, "-p", str(mqtt_broker.port), "-V", "mqttv5", "-W", str(PATIENCE_S))
        asked = ("-t", f"{base}/question", "-e", f"{base}/answer", "-m", "warm?")
        with subprocess.Popen(["mosquitto_rr", *at, *asked], stdout=subprocess.PIPE, text=True) as asking:
            assert messages(listener) == [f"> {base}/answer warm?"]
            tools.pub("-t", f"{base}/answer", "-m", "21.5")
            until(lambda: asking.poll() is not None, "the end of mosquitto_rr")
            assert asking.stdout
            assert asking.stdout.read() == "21.5\n"
