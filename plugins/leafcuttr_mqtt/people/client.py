"""A client of MQTT 5.0 for the commands `leafcuttr mqtt publish` and `subscribe`: one connection, which blocks."""

import time
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Final, TypeVar

from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import (
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    ReasonCode,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    Version,
)
from leafcuttr_mqtt.packets.writer import encode
from leafcuttr_mqtt.people.dialing import PLAIN, DialSecurity, dial, parse_address, why_broken
from leafcuttr_sdk.errors import PluginError

P = TypeVar("P")
LARGEST: Final = 256 * 1024 * 1024
_KEEP_ALIVE_S: Final = 30
_ERROR: Final = 0x80


class MqttClient:
    """A context. Each call raises PluginError with a line for a person: no broker, a refusal, a connection that broke.

    `timeout_s` bounds each answer. The session ends with the connection.
    """

    def __init__(
        self,
        address: str,
        timeout_s: float,
        *,
        user_name: str | None = None,
        password: str | None = None,
        client_id: str = "",
        security: DialSecurity = PLAIN,
    ) -> None:
        """Raises PluginError where there can be no such address."""
        self._address = parse_address(address, security)
        self._security = security
        self._timeout_s = timeout_s
        self._connect = Connect(
            Version.V5,
            client_id,
            True,
            _KEEP_ALIVE_S,
            user_name,
            None if password is None else password.encode(),
            properties=Properties(maximum_packet_size=LARGEST),
        )
        self._reader = PacketReader.of_server(LARGEST, Version.V5)
        self._packets: list[Packet] = []
        self._number = 0

    def __enter__(self) -> "MqttClient":
        self._socket = dial(self._address, self._security, self._timeout_s)
        self._send(self._connect)
        answer = self._expect(ConnAck)
        if answer.reason:
            self._socket.close()
            raise PluginError(
                f"the broker refuses the connection: {_reason(answer.reason, answer.properties)}"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        with suppress(OSError):  # it has gone
            self._socket.sendall(encode(Disconnect(), Version.V5))
        self._socket.close()

    def publish(self, topic: str, payload: bytes, qos: int, retain: bool, properties: Properties) -> int:
        """Publish a message, and return its reason code once it is acknowledged: 0, or that nobody has subscribed."""
        self._number = self._number % 0xFFFF + 1
        number = self._number if qos else 0
        self._send(Publish(topic, payload, qos, retain, number, properties=properties))
        if not qos:
            return 0
        first: PubAck | PubRec = self._expect(PubAck) if qos == 1 else self._expect(PubRec)
        if first.reason >= _ERROR:
            raise PluginError(f"the message was refused: {_reason(first.reason, first.properties)}")
        if qos == 2:
            self._send(PubRel(number))
            self._expect(PubComp)
        return first.reason

    def subscribe(self, requests: tuple[SubscriptionRequest, ...]) -> None:
        self._send(Subscribe(1, requests))
        answer = self._expect(SubAck)
        for request, reason in zip(requests, answer.reasons, strict=False):
            if reason >= _ERROR:
                raise PluginError(
                    f"the broker refuses the filter {request.filter}: {_reason(reason, answer.properties)}"
                )

    def messages(self, idle_s: float | None = None) -> Iterator[Publish]:
        """What comes, each acknowledged once the caller takes the next one. It ends after `idle_s` without a
        message."""
        quiet_since = time.monotonic()
        while True:
            packet = self._next(min(_KEEP_ALIVE_S / 2, idle_s or _KEEP_ALIVE_S), idle_s, quiet_since)
            if packet is None:
                return
            if isinstance(packet, Publish):
                yield packet
                quiet_since = time.monotonic()
                if packet.qos == 1:
                    self._send(PubAck(packet.packet_id))
                elif packet.qos == 2:
                    self._send(PubRec(packet.packet_id))
            elif isinstance(packet, PubRel):
                self._send(PubComp(packet.packet_id))
            else:
                self._check(packet)

    def _next(self, pause_s: float, idle_s: float | None, quiet_since: float) -> Packet | None:
        """The next packet; None once it has been quiet for `idle_s`."""
        while not self._packets:
            if idle_s is not None and time.monotonic() - quiet_since >= idle_s:
                return None
            if not self._receive(pause_s):
                self._send(PingReq())
        return self._packets.pop(0)

    def _expect(self, kind: type[P]) -> P:
        """The answer that is due. Messages that come before it are put off."""
        put_off: list[Packet] = []
        deadline = time.monotonic() + self._timeout_s
        while True:
            while not self._packets:
                left = deadline - time.monotonic()
                if left <= 0 or not self._receive(left):
                    raise PluginError(f"the broker did not answer within {self._timeout_s:g} s")
            packet = self._packets.pop(0)
            if isinstance(packet, kind):
                self._packets = put_off + self._packets
                return packet
            if isinstance(packet, Publish | PubRel):
                put_off.append(packet)
            else:
                self._check(packet)

    def _check(self, packet: Packet) -> None:
        if isinstance(packet, Disconnect):
            raise PluginError(
                f"the broker has ended the connection: {_reason(packet.reason, packet.properties)}"
            )
        if not isinstance(packet, PingResp):
            raise PluginError(f"the broker sent {type(packet).__name__.upper()}, which was not due")

    def _send(self, packet: Packet) -> None:
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(encode(packet, Version.V5))
        except OSError as error:
            raise PluginError(f"the connection to {self._address} broke: {why_broken(error)}") from None

    def _receive(self, seconds: float) -> bool:
        """Whether something came in that time."""
        try:
            self._socket.settimeout(max(seconds, 0.001))
            data = self._socket.recv(65536)
        except TimeoutError:
            return False
        except OSError as error:
            raise PluginError(f"the connection to {self._address} broke: {why_broken(error)}") from None
        if not data:
            raise PluginError(f"{self._address} has closed the connection")
        self._packets += self._reader.feed(data)
        if self._reader.error is not None:
            raise PluginError(f"{self._address} does not speak MQTT 5.0: {self._reader.error.text}")
        return True


def _reason(reason: int, properties: Properties) -> str:
    known = reason in ReasonCode._value2member_map_
    name = ReasonCode(reason).name.lower().replace("_", " ") if known else "reason"
    text = f"{name} (0x{reason:02x})"
    return f"{text}: {properties.reason_string}" if properties.reason_string else text
