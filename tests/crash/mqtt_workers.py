"""What publishes and subscribes while the broker is killed: clients on a socket of their own, and paho's. Each is a
thread that comes back whenever its connection breaks, with its session, and notes what the broker has acknowledged or
delivered."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from crash.mqtt_wire import (
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    Broken,
    Connection,
    Packet,
    acknowledgement,
    message_of,
    publish,
)
from support.waiting import until

WINDOW = 20
"""Messages that a publisher has under way."""


def payload_of(name: str, number: int) -> bytes:
    return f"{name}:{number}:".encode().ljust(60, b"x")


def name_and_number(payload: bytes) -> tuple[str, int]:
    name, number, _ = payload.split(b":", 2)
    return name.decode(), int(number)


class Worker:
    """A client in a thread. What it has failed with is `failure`."""

    def __init__(self, port: int, name: str) -> None:
        self.port = port
        self.name = name
        self.failure: str | None = None
        self.connections = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self.thread.start()

    def check(self) -> None:
        assert self.failure is None, f"{self.name}: {self.failure}"

    def _run(self) -> None:
        try:
            while not self.over.is_set():
                try:
                    connection = Connection(self.port, self.name)
                except Broken:
                    self.over.wait(0.02)
                    continue
                try:
                    if self.connections and not connection.session_present:
                        raise AssertionError("its session is lost")
                    self.connected(connection)
                    # From now on the broker is to have the session: SUBACK, or an acknowledgement, has come.
                    self.connections += 1
                    while not self.over.is_set():
                        self.step(connection)
                except Broken:
                    continue
                finally:
                    connection.close()
        except Exception as error:
            self.failure = repr(error)

    def connected(self, connection: Connection) -> None:
        raise NotImplementedError

    def step(self, connection: Connection) -> None:
        raise NotImplementedError


class Publisher(Worker):
    """Publishes numbered messages with one QoS, to each of its topics in turn. `acknowledged`: those of which PUBACK or
    PUBREC came."""

    def __init__(self, port: int, name: str, qos: int, topics: list[str]) -> None:
        super().__init__(port, name)
        self.qos = qos
        self.topics = topics
        self.acknowledged: set[int] = set()
        self.begun = 0
        self._ends = False
        self._under_way: dict[int, int] = {}
        """By packet identifier, in order: the message; not acknowledged."""
        self._released: list[int] = []
        """Packet identifiers that await PUBCOMP."""

    def topic_of(self, number: int) -> str:
        return self.topics[number % len(self.topics)]

    @property
    def progress(self) -> int:
        return len(self.acknowledged)

    def finish(self) -> None:
        """Begin no more; until all that was begun is acknowledged."""
        self._ends = True

    @property
    def finished(self) -> bool:
        return self._ends and not self._under_way and not self._released

    def connected(self, connection: Connection) -> None:
        if connection.session_present:
            # All that is not acknowledged, in the order in which it was sent ([MQTT-4.4.0-1], [MQTT-4.6.0-1]).
            for packet_id, number in self._under_way.items():
                self._send(connection, packet_id, number, duplicate=True)
            for packet_id in self._released:
                connection.send(acknowledgement(PUBREL, packet_id))
        else:
            # The broker was killed before anything of the session was acknowledged: these are new to it.
            assert not self.acknowledged
            for packet_id, number in self._under_way.items():
                self._send(connection, packet_id, number, duplicate=False)

    def _send(self, connection: Connection, packet_id: int, number: int, *, duplicate: bool) -> None:
        topic, payload = self.topic_of(number), payload_of(self.name, number)
        connection.send(publish(topic, payload, self.qos, packet_id, duplicate=duplicate))

    def step(self, connection: Connection) -> None:
        while not self._ends and len(self._under_way) + len(self._released) < WINDOW:
            number = self.begun
            packet_id = next(
                each
                for each in range(number % 60000 + 1, 65536)
                if each not in self._under_way and each not in self._released
            )
            self.begun += 1
            self._under_way[packet_id] = number
            self._send(connection, packet_id, number, duplicate=False)
        for each in connection.read_now(0.1):
            self._answered(connection, each)

    def _answered(self, connection: Connection, answer: Packet) -> None:
        packet_id = answer.packet_id
        if answer.type in (PUBACK, PUBREC):
            number = self._under_way.pop(packet_id, None)
            if number is not None:
                self.acknowledged.add(number)
            if answer.type == PUBREC:
                if packet_id not in self._released:
                    self._released.append(packet_id)
                connection.send(acknowledgement(PUBREL, packet_id))
        elif answer.type == PUBCOMP and packet_id in self._released:
            self._released.remove(packet_id)


class Subscriber(Worker):
    """Subscribes once. `received`: payloads in the order in which they were delivered: with QoS 2 each delivery once,
    by the protocol. With `leaves` it goes away for a while now and then."""

    def __init__(
        self, port: int, name: str, filters: Mapping[str, int], *, leaves: random.Random | None = None
    ) -> None:
        super().__init__(port, name)
        self.filters = dict(filters)
        self.received: list[bytes] = []
        self.ready = threading.Event()
        self._dice = leaves
        self._open: set[int] = set()
        """Packet identifiers of QoS 2 that were received and not released (4.3.3)."""

    @property
    def progress(self) -> int:
        return len(self.received)

    def connected(self, connection: Connection) -> None:
        if not self.ready.is_set():
            connection.subscribe(self.filters)
            self.ready.set()

    def step(self, connection: Connection) -> None:
        if self._dice is not None and self._dice.random() < 0.002:
            self.over.wait(self._dice.random())
            raise Broken("it has gone away")
        for each in connection.read_now(0.1):
            if each.type == PUBLISH:
                message = message_of(each)
                if message.qos == 1:
                    self.received.append(message.payload)
                    connection.send(acknowledgement(PUBACK, message.packet_id))
                elif message.qos == 2:
                    if message.packet_id not in self._open:
                        self._open.add(message.packet_id)
                        self.received.append(message.payload)
                    connection.send(acknowledgement(PUBREC, message.packet_id))
            elif each.type == PUBREL:
                self._open.discard(each.packet_id)
                connection.send(acknowledgement(PUBCOMP, each.packet_id))


class Paho:
    """A client of paho-mqtt, with a session that stays, which comes back by itself."""

    def __init__(self, port: int, name: str) -> None:
        import paho.mqtt.client as mqtt

        class Client(mqtt.Client):
            """paho 2.1 forgets at the second attempt to connect that PUBREC came, and publishes the message once more:
            here it goes on with PUBREL, as after the first."""

            def _messages_reconnect_reset_out(self) -> None:
                released = [
                    each for each in self._out_messages.values() if each.state == mqtt.mqtt_ms_resend_pubrel
                ]
                super()._messages_reconnect_reset_out()
                for each in released:
                    each.state = mqtt.mqtt_ms_resend_pubrel

        self.port = port
        self.name = name
        self.failure: str | None = None
        self.connections = 0
        self.client: Any = Client(
            mqtt.CallbackAPIVersion.VERSION2, client_id=name, clean_session=False, protocol=mqtt.MQTTv311
        )
        self.client.reconnect_delay_set(min_delay=0.05, max_delay=0.3)
        self.client.max_inflight_messages_set(WINDOW)
        self.client.on_connect = self._connected

    def start(self) -> None:
        self.client.connect_async("127.0.0.1", self.port, keepalive=60)
        self.client.loop_start()

    def check(self) -> None:
        assert self.failure is None, f"{self.name}: {self.failure}"

    def stop(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.failure = f"refused: {reason}"
        elif self.connections and not flags.session_present:
            self.failure = "its session is lost"
        else:
            self.connected()

    def connected(self) -> None:
        self.connections += 1


class PahoPublisher(Paho):
    """As `Publisher`."""

    def __init__(self, port: int, name: str, qos: int, topics: list[str]) -> None:
        super().__init__(port, name)
        self.qos = qos
        self.topics = topics
        self.acknowledged: set[int] = set()
        self.begun = 0
        self._numbers: dict[int, int] = {}
        self._published: deque[int] = deque()
        """Packet identifiers that paho says are published, which it may say before `publish` has returned."""
        self._ends = threading.Event()
        self._slept = threading.Event()
        """Never set."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.client.on_publish = self._on_publish

    def topic_of(self, number: int) -> str:
        return self.topics[number % len(self.topics)]

    @property
    def progress(self) -> int:
        return len(self.acknowledged)

    def start(self) -> None:
        super().start()
        self._thread.start()

    def finish(self) -> None:
        self._ends.set()

    @property
    def finished(self) -> bool:
        return not self._thread.is_alive()

    def _run(self) -> None:
        until(lambda: self.connections or self._ends.is_set(), "paho's first connection", seconds=120)
        while not (self._ends.is_set() and len(self.acknowledged) == self.begun):
            while self._published:
                self.acknowledged.add(self._numbers.pop(self._published.popleft()))
            if self._ends.is_set() or self.begun - len(self.acknowledged) >= WINDOW:
                self._slept.wait(0.002)
                continue
            number = self.begun
            self.begun += 1
            info = self.client.publish(self.topic_of(number), payload_of(self.name, number), self.qos)
            self._numbers[info.mid] = number

    def _on_publish(self, client: Any, data: Any, mid: int, reason: Any, properties: Any) -> None:
        self._published.append(mid)


class PahoSubscriber(Paho):
    """As `Subscriber`."""

    def __init__(self, port: int, name: str, filters: Mapping[str, int]) -> None:
        super().__init__(port, name)
        self.filters = dict(filters)
        self.received: list[bytes] = []
        self.ready = threading.Event()
        self.client.on_message = self._message
        self.client.on_subscribe = self._subscribed

    @property
    def progress(self) -> int:
        return len(self.received)

    def connected(self) -> None:
        if self.ready.is_set():
            self.connections += 1
        else:
            self.client.subscribe(list(self.filters.items()))

    def _subscribed(self, client: Any, data: Any, mid: int, reasons: Any, properties: Any) -> None:
        self.connections += 1
        self.ready.set()

    def _message(self, client: Any, data: Any, message: Any) -> None:
        self.received.append(message.payload)
