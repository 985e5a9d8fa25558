"""A hub without sockets, and connections that only note what they are told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.frames import PublishFrames
from leafcuttr_mqtt.packets.types import Connect, Packet, Properties, ReasonCode, Version, Will
from leafcuttr_mqtt.routing.clients import Client
from leafcuttr_mqtt.routing.hub import Hub
from leafcuttr_mqtt.session.conversation import Conversation
from leafcuttr_mqtt.session.limits import Limits, QueueLimits
from leafcuttr_mqtt.storage.none import NoStore
from support.logs import HandClock


class Noted:
    """An `Attached` connection."""

    def __init__(self, version: Version = Version.V5) -> None:
        self.version = version
        self.fluent = True
        self.frames: list[bytes] = []
        self.packets: list[Packet] = []
        self.touches = 0
        self.ended: ReasonCode | None = None

    @property
    def peer(self) -> str:
        return "127.0.0.1:1"

    @property
    def listener(self) -> str:
        return "mqtt"

    def send_frame(self, frames: PublishFrames, retain: bool, identifiers: tuple[int, ...]) -> None:
        self.frames.append(frames.frame(self.version, 0, retain, identifiers).head)

    def put_packet(self, packet: Packet) -> None:
        self.packets.append(packet)

    def wait_for_store(self) -> None:
        self.touches += 1

    def touched(self) -> None:
        self.touches += 1

    def send_soon(self) -> None:
        self.touches += 1

    def end(self, reason: ReasonCode, text: str = "") -> None:
        self.ended = reason


class Rig:
    """A hub without a store, and what it publishes by itself."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.clock = HandClock()
        self.published: list[Message] = []
        self.limits = limits or Limits(queue=QueueLimits(max_messages=10))
        store: Any = NoStore()
        self.hub = Hub(self.limits, self.clock, store, logging.getLogger("test"), self.publish)

    def publish(self, message: Message, stored: Callable[[], None]) -> None:
        self.published.append(message)
        stored()

    def connect(
        self, client_id: str, *, clean: bool = True, expiry_s: int = 0, will: Will | None = None
    ) -> tuple[Client, Noted, bool]:
        noted = Noted()
        properties = Properties(session_expiry_interval=expiry_s)
        connect = Connect(Version.V5, client_id, clean, 0, will=will, properties=properties)
        conversation = Conversation(self.limits)
        conversation.receive([connect])
        client, present = self.hub.connect(noted, connect, client_id)
        conversation.accept(client.session, present=present)
        self.hub.note(client)
        return client, noted, present

    def pass_time(self, seconds: float) -> None:
        """Move the clock, and do what is due then."""
        self.clock.ms += round(seconds * 1000)
        self.hub.sweep()
