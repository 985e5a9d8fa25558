#!/usr/bin/env python3
"""What reading and writing an MQTT packet costs: the codec alone, no socket and no broker.

  mqtt_packets.py [--rounds N]

500 packets a read, as a publisher with a window sends them, the cases in turn; the best of all rounds is taken. PUBLISH
has a topic of 27 characters and a payload of 100 bytes; `properties` are a content type, an expiry and a user property,
the same in each packet, `other properties` with correlation data that differs.
"""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import cases
from leafcuttr_mqtt.packets.frames import PublishFrames, acknowledgements
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import NO_PROPERTIES, PacketType, Properties, Publish, Version
from leafcuttr_mqtt.packets.writer import encode

COUNT = 500
LARGE = 1 << 20
PAYLOAD = b"x" * 100
WITH = Properties(
    content_type="application/json", message_expiry_interval=60, user_properties=(("site", "north"),)
)


def published(version: Version, qos: int, properties: Callable[[int], Properties]) -> bytes:
    return b"".join(
        encode(
            Publish(
                f"sensors/kitchen/temperature{number % 8}",
                PAYLOAD,
                qos,
                packet_id=number + 1 if qos else 0,
                properties=properties(number),
            ),
            version,
        )
        for number in range(COUNT)
    )


def reading(version: Version, *data: bytes) -> Callable[[], object]:
    """Each run reads the next one of `data`."""
    reader = PacketReader(LARGE, version)
    turns = itertools.cycle(data)

    def run() -> object:
        got = reader.feed(next(turns))
        assert len(got) == COUNT
        return got

    return run


def framing(qos: int, version: Version) -> Callable[[], object]:
    """One message for 500 subscribers."""
    ids = range(1, COUNT + 1)

    def run() -> object:
        frames = PublishFrames("sensors/kitchen/temperature", PAYLOAD, WITH)
        if qos:
            return [frames.frame(version, qos, False).with_id(packet_id) for packet_id in ids]
        return [frames.frame(version, qos, False).head for _ in ids]

    return run


def encoding(qos: int, version: Version) -> Callable[[], object]:
    """The same by `encode`, to compare with."""
    packets = [
        Publish("sensors/kitchen/temperature", PAYLOAD, qos, packet_id=1 if qos else 0, properties=WITH)
    ]
    return lambda: [encode(packet, version) for packet in packets * COUNT]


def correlated(number: int) -> Properties:
    return Properties(correlation_data=number.to_bytes(8, "big"))


V311, V5 = Version.V3_1_1, Version.V5
ACKS = acknowledgements(PacketType.PUBACK, range(1, COUNT + 1))
CASES: dict[str, Callable[[], Any]] = {
    "read PUBLISH, QoS 0, 3.1.1": reading(V311, published(V311, 0, lambda _: NO_PROPERTIES)),
    "read PUBLISH, QoS 1, 3.1.1": reading(V311, published(V311, 1, lambda _: NO_PROPERTIES)),
    "read PUBLISH, QoS 0, 5.0": reading(V5, published(V5, 0, lambda _: NO_PROPERTIES)),
    "read PUBLISH, QoS 1, 5.0": reading(V5, published(V5, 1, lambda _: NO_PROPERTIES)),
    "read PUBLISH, QoS 1, 5.0, properties": reading(V5, published(V5, 1, lambda _: WITH)),
    "read PUBLISH, QoS 1, 5.0, other properties": reading(
        V5,
        *(published(V5, 1, lambda number, turn=turn: correlated(turn * COUNT + number)) for turn in range(5)),
    ),
    "read PUBACK, 3.1.1": reading(V311, ACKS),
    "read PUBACK, 5.0": reading(V5, ACKS),
    "write PUBACK": lambda: acknowledgements(PacketType.PUBACK, range(1, COUNT + 1)),
    "write PUBLISH for many, QoS 0, 5.0": framing(0, V5),
    "write PUBLISH for many, QoS 1, 5.0": framing(1, V5),
    "write PUBLISH, QoS 1, 5.0": encoding(1, V5),
}


def measure(rounds: int) -> None:
    cases.measure(CASES, COUNT, rounds)


if __name__ == "__main__":
    cases.main(__doc__, measure)
