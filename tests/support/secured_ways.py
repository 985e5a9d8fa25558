"""How each client does the duties of `secured_duties`: in this process, by a command of its own, or by a program.

    way = WAYS["kcat"][0]
    way.rights(scene)

`again` returns how many records were sent, `quota` the longest time in ms for which the client was told to wait, or
None if it does not say so (`SILENT`).
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import pytest

from support import jars, secured_clients
from support.client_programs import ALL, Program
from support.secured_duties import (
    AGAIN,
    CLIENTS,
    EACH,
    GIVES_UP,
    LACKS,
    PAUSE_S,
    SIZE,
    TIMES,
    mechanism,
    ways,
)
from support.secured_scene import Scene

JAVA_TOOLS = ("4.3.1", "3.9.1")
LONGEST = "throttle-time-max"


class Way(Protocol):
    @property
    def version(self) -> str: ...

    @property
    def missing(self) -> str: ...

    def rights(self, scene: Scene) -> None: ...

    def again(self, scene: Scene) -> int: ...

    def quota(self, scene: Scene) -> int | None: ...


class ConfluentKafka:
    version = missing = ""

    def _settings(self, scene: Scene) -> dict[str, Any]:
        token = {"oauth_cb": lambda _: (scene.token, time.time() + 3600)}
        return {**scene.librdkafka, **(token if scene.security == "OAUTHBEARER" else {})}

    def rights(self, scene: Scene) -> None:
        from confluent_kafka import KafkaError, Producer

        settings, outcomes = self._settings(scene), list[Any]()
        secured_clients.confluent_kafka(settings, scene.fresh)
        producer = Producer(settings)
        producer.produce(scene.other, b"x", callback=lambda error, _: outcomes.append(error))
        assert producer.flush(60) == 0
        assert [each.code() for each in outcomes] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]

    def again(self, scene: Scene) -> int:
        """On the connection that it has: one that was closed would be an error of the client."""
        from confluent_kafka import Producer

        errors: list[str] = []
        producer = Producer({**self._settings(scene), "error_cb": lambda one: errors.append(str(one))})
        sent = 0
        for _ in scene.ticks():
            producer.produce(scene.topic, b"x")
            assert producer.flush(30) == 0
            sent += 1
        assert errors == []
        return sent

    def quota(self, scene: Scene) -> int:
        from confluent_kafka import Producer

        told: list[float] = [0]
        settings = {**self._settings(scene), "throttle_cb": lambda event: told.append(event.throttle_time)}
        producer = Producer(settings)
        for _ in range(TIMES):
            for _ in range(EACH):
                producer.produce(scene.topic, bytes(SIZE))
            assert producer.flush(60) == 0
        return round(1000 * max(told))


class KafkaPython:
    version = missing = ""

    def _settings(self, scene: Scene) -> dict[str, Any]:
        found = secured_clients.python_settings(scene.broker, scene.security)
        if scene.security == "OAUTHBEARER":
            from kafka.net.sasl.oauth import AbstractTokenProvider  # type: ignore[import-untyped]

            class Provider(AbstractTokenProvider):  # type: ignore[misc]
                def token(self) -> str:
                    return scene.token

            found["sasl_oauth_token_provider"] = Provider()
        return {**found, "client_id": scene.client_id}

    def rights(self, scene: Scene) -> None:
        from kafka import KafkaProducer  # type: ignore[import-untyped]
        from kafka.errors import TopicAuthorizationFailedError  # type: ignore[import-untyped]

        secured_clients.kafka_python(self._settings(scene), scene.fresh)
        producer = KafkaProducer(**self._settings(scene))
        with pytest.raises(TopicAuthorizationFailedError):
            producer.send(scene.other, b"x").get(60)
        producer.close()

    def again(self, scene: Scene) -> int:
        from kafka import KafkaProducer

        producer = KafkaProducer(**self._settings(scene))
        sent = [producer.send(scene.topic, b"x").get(60) for _ in scene.ticks()]
        producer.close()
        return len(sent)

    def quota(self, scene: Scene) -> int:
        from kafka import KafkaProducer

        producer = KafkaProducer(**self._settings(scene), linger_ms=5)
        for _ in range(TIMES):
            for one in [producer.send(scene.topic, bytes(SIZE)) for _ in range(EACH)]:
                one.get(60)
        groups: list[dict[str, float]] = list(producer.metrics().values())
        producer.close()
        return round(max(kept for group in groups for name, kept in group.items() if name == LONGEST))


class Aiokafka:
    version = missing = ""

    def _settings(self, scene: Scene) -> dict[str, Any]:
        found = secured_clients.python_settings(scene.broker, scene.security)
        if scene.security == "OAUTHBEARER":
            from aiokafka.abc import AbstractTokenProvider  # type: ignore[import-untyped]

            class Provider(AbstractTokenProvider):  # type: ignore[misc]
                async def token(self) -> str:
                    await asyncio.sleep(0)
                    return scene.token

            found["sasl_oauth_token_provider"] = Provider()
        return {**found, "client_id": scene.client_id}

    def rights(self, scene: Scene) -> None:
        from aiokafka.errors import TopicAuthorizationFailedError  # type: ignore[import-untyped]

        secured_clients.aiokafka(self._settings(scene), scene.fresh)

        async def refused(producer: Any) -> None:
            with pytest.raises(TopicAuthorizationFailedError):
                await producer.send_and_wait(scene.other, b"x")

        self._with_producer(scene, refused)

    def again(self, scene: Scene) -> int:
        async def write(producer: Any) -> int:
            sent, ends = 0, time.monotonic() + scene.seconds
            while time.monotonic() < ends:
                await producer.send_and_wait(scene.topic, b"x")
                await asyncio.sleep(PAUSE_S)
                sent += 1
            return sent

        return int(self._with_producer(scene, write))

    def quota(self, scene: Scene) -> None:
        async def write(producer: Any) -> None:
            for _ in range(TIMES):
                for one in [await producer.send(scene.topic, bytes(SIZE)) for _ in range(EACH)]:
                    await one

        self._with_producer(scene, write)

    def _with_producer(self, scene: Scene, work: Callable[[Any], Any]) -> Any:
        from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]

        async def run() -> Any:
            async with AIOKafkaProducer(**self._settings(scene)) as producer:
                return await work(producer)

        return asyncio.run(run())


class Kcat:
    """It reads without a group, as it has no end there."""

    version = ""

    @property
    def missing(self) -> str:
        return "" if shutil.which("kcat") else "kcat is not installed (apt-get install kcat)"

    def rights(self, scene: Scene) -> None:
        settings = scene.librdkafka
        secured_clients.kcat(settings, scene.fresh)
        options = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
        command = ["kcat", "-P", "-t", scene.other, *options]
        done = subprocess.run(command, input="x\n", capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode != 0
        assert "Topic authorization failed" in done.stderr

    def again(self, scene: Scene) -> int:
        return self._write(scene, ("x" for _ in scene.ticks()))

    def quota(self, scene: Scene) -> None:
        self._write(scene, ("x" * SIZE for _ in range(TIMES * EACH)), f"batch.num.messages={EACH}")

    def _write(self, scene: Scene, lines: Iterator[str], *more: str) -> int:
        options = [f"{name}={value}" for name, value in scene.librdkafka.items()]
        words = [word for option in (*options, *more) for word in ("-X", option)]
        # What it says goes to a file: a pipe that nobody reads would hold it up.
        with (
            (scene.folder / "kcat.log").open("w+") as log,
            subprocess.Popen(
                ["kcat", "-P", "-t", scene.topic, *words], stdin=subprocess.PIPE, stderr=log, text=True
            ) as process,
        ):
            assert process.stdin is not None
            sent = 0
            for line in lines:
                process.stdin.write(f"{line}\n")
                process.stdin.flush()
                sent += 1
            process.stdin.close()
            status = process.wait(120)
            log.seek(0)
            assert status == 0, log.read()[-2000:]
        return sent


@dataclass(frozen=True)
class JavaTools:
    """The console's producer and consumer, whose group the consumer itself names; and the producer that measures."""

    version: str

    @property
    def missing(self) -> str:
        return jars.missing() or ""

    def rights(self, scene: Scene) -> None:
        properties = scene.java
        config, address = scene.write("client.properties", properties), properties["bootstrap.servers"]
        secured_clients.java_console(self.version, address, config, scene.fresh)
        words = ("--bootstrap-server", address, "--producer.config", str(config), "--topic", scene.other)
        command = jars.java(self.version, secured_clients.console_producer(self.version), *words)
        done = subprocess.run(command, input="x\n", capture_output=True, text=True, timeout=90, check=False)
        assert "TopicAuthorizationException" in done.stdout + done.stderr

    def again(self, scene: Scene) -> int:
        a_second = round(1 / PAUSE_S)
        count = round(scene.seconds * a_second)
        self._perform(scene, count, a_second, 1)
        return count

    def quota(self, scene: Scene) -> int:
        said = self._perform(scene, TIMES * EACH, -1, SIZE)
        (line,) = [one for one in said.splitlines() if "produce-throttle-time-max" in one]
        return round(float(line.rpartition(":")[2]))

    def _perform(self, scene: Scene, count: int, a_second: int, size: int) -> str:
        words = ("--topic", scene.topic, "--num-records", count, "--throughput", a_second)
        more = ("--record-size", size, "--producer.config", scene.write("client.properties", scene.java))
        given = map(str, (*words, *more, "--print-metrics"))
        command = jars.java(self.version, "org.apache.kafka.tools.ProducerPerformance", *given)
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout


@cache
def _built(number: int) -> list[str]:
    """The command of a program, which is built once."""
    return ALL[number].secured()


@dataclass(frozen=True)
class ByProgram:
    """One of those below tests/clients/programs, which is run once for each duty."""

    program: Program

    @property
    def version(self) -> str:
        return self.program.version

    @property
    def missing(self) -> str:
        return self.program.missing

    def rights(self, scene: Scene) -> None:
        self._run("rights", scene)

    def again(self, scene: Scene) -> int:
        return int(self._run("again", scene))

    def quota(self, scene: Scene) -> int:
        return int(self._run("quota", scene))

    def _run(self, duty: str, scene: Scene) -> str:
        settings = scene.java if "java" in self.program.tools else scene.librdkafka
        more = {
            "scenario.topic": scene.topic,
            "scenario.other": scene.other,
            "scenario.group": scene.group,
            "scenario.seconds": scene.seconds,
            "scenario.token": scene.token,
        }
        file = scene.write("scenario", {**settings, **more})
        told = self.program.told([*_built(ALL.index(self.program)), duty, str(file)])
        assert duty in told.did, told.error
        assert not told.error
        return told.did[duty]


_OURS: dict[str, list[Way]] = {
    "confluent-kafka": [ConfluentKafka()],
    "kcat": [Kcat()],
    "kafka-python": [KafkaPython()],
    "aiokafka": [Aiokafka()],
    "Kafka's Java tools": [JavaTools(version) for version in JAVA_TOOLS],
}


def _ways_of(name: str) -> list[Way]:
    return _OURS[name] if name in _OURS else [ByProgram(one) for one in ALL if one.client == name]


WAYS: dict[str, list[Way]] = {name: _ways_of(name) for name in CLIENTS}
"""By the clients' names on the page; those in several versions have several."""


def cases(duty: str = "") -> list[Any]:
    """Parameters of a test, (client, way, security): of the rights, or of this duty."""
    found: list[Any] = []
    for client in CLIENTS:
        for way in WAYS[client]:
            lacks = LACKS.get(client, {})
            known = pytest.mark.client(client, version=way.version, lacks=lacks)
            needs = pytest.mark.skipif(bool(way.missing), reason=way.missing)
            for security in ways(client):
                if duty == AGAIN and (mechanism(security) is None or client in GIVES_UP):
                    continue
                marks = [known, needs]
                # A duty that the client has not got is no part of the page's table; the test is still run.
                if (shown := duty or security) not in lacks:
                    marks.append(pytest.mark.duty(shown))
                name = " ".join(filter(None, (client, way.version, security)))
                found.append(pytest.param(client, way, security, id=name.replace(" ", "-"), marks=marks))
    return found
