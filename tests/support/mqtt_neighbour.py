"""A client of MQTT that is served while somebody else misbehaves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from mqtt.conformance.raw import Raw
from support.crowds import Neighbour

TOPIC = "neighbour/mqtt"


class MqttNeighbour(Neighbour):
    """Publishes with QoS 1, and gets what it has published, one message after the other."""

    def turns(self) -> Iterator[None]:
        host, _, port = self.address.rpartition(":")
        with Raw(host, int(port), 5) as raw:
            raw.connect("neighbour")
            raw.subscribe((TOPIC, 1))
            for number in count():
                answer = raw.publish(TOPIC, b"%d" % number, 1)
                assert answer is not None
                assert answer.reason == 0
                assert raw.message().payload == b"%d" % number
                yield
