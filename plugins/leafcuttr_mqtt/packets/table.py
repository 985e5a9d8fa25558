"""Which first bytes a packet may have, by version and sender, and what reads its body."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, TypeAlias

from leafcuttr_mqtt.packets.answers import read_connack, read_pingresp, read_suback, read_unsuback
from leafcuttr_mqtt.packets.bodies import (
    Ack,
    Sender,
    Steps,
    read_ack,
    read_auth,
    read_disconnect,
    read_pingreq,
    read_subscribe,
    read_unsubscribe,
)
from leafcuttr_mqtt.packets.fields import Body
from leafcuttr_mqtt.packets.types import Packet, PacketType, PubAck, PubComp, PubRec, PubRel, Version

Read: TypeAlias = Callable[[Body, Version, Sender, bool], Packet]
"""Body, version, sender, and whether the sender is a bridge."""
ReadInSteps: TypeAlias = Callable[[Body, Version, bool], Steps]
"""Body, version, and whether the sender is a bridge."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    kind: PacketType
    name: str
    read: Read
    in_steps: ReadInSteps | None = None
    """In the place of `read`."""
    ack: Ack | None = None
    """Of a packet that may consist of a packet identifier only."""
    publish: bool = False
    qos: int = 0
    retain: bool = False
    duplicate: bool = False
    """PUBLISH, and what its first byte says."""


def _elsewhere(body: Body, version: Version, sender: Sender, bridge: bool) -> Packet:
    raise AssertionError("the reader itself reads these")


def _ack(kind: PacketType, ack: Ack) -> Rule:
    def read(body: Body, version: Version, sender: Sender, bridge: bool) -> Packet:
        return read_ack(body, version, sender, kind, ack)

    return Rule(kind, kind.name, read, ack=ack)


def _rule(kind: PacketType, read: Read) -> Rule:
    return Rule(kind, kind.name, read)


def _in_steps(kind: PacketType, read: ReadInSteps) -> Rule:
    return Rule(kind, kind.name, _elsewhere, in_steps=read)


PUBLISH: Final = Rule(PacketType.PUBLISH, "PUBLISH", _elsewhere, publish=True)
CONNECT: Final = _rule(PacketType.CONNECT, _elsewhere)

_BOTH_SEND: Final = (
    PUBLISH,
    _ack(PacketType.PUBACK, PubAck),
    _ack(PacketType.PUBREC, PubRec),
    _ack(PacketType.PUBREL, PubRel),
    _ack(PacketType.PUBCOMP, PubComp),
)
_DISCONNECT: Final = _rule(
    PacketType.DISCONNECT, lambda body, version, sender, _: read_disconnect(body, version, sender)
)
_AUTH: Final = _rule(PacketType.AUTH, lambda body, _, sender, __: read_auth(body, sender))
_CLIENTS_SEND: Final = (
    _in_steps(PacketType.SUBSCRIBE, read_subscribe),
    _in_steps(PacketType.UNSUBSCRIBE, lambda body, version, _: read_unsubscribe(body, version)),
    _rule(PacketType.PINGREQ, lambda body, _, __, ___: read_pingreq(body)),
    _DISCONNECT,
)
_SERVERS_SEND: Final = (
    _rule(PacketType.CONNACK, lambda body, version, _, __: read_connack(body, version)),
    _rule(PacketType.SUBACK, lambda body, version, _, __: read_suback(body, version)),
    _rule(PacketType.UNSUBACK, lambda body, version, _, __: read_unsuback(body, version)),
    _rule(PacketType.PINGRESP, lambda body, _, __, ___: read_pingresp(body)),
)

_FLAGS: Final = {PacketType.PUBREL: 2, PacketType.SUBSCRIBE: 2, PacketType.UNSUBSCRIBE: 2}
"""2.1.3: the flags of all others are 0, but for PUBLISH."""


@cache
def sent_by(version: Version | None, sender: Sender) -> dict[PacketType, Rule]:
    """What a sender may send. Without a version: what may come first."""
    if version is None:
        return {PacketType.CONNECT: CONNECT}
    rules = [*_BOTH_SEND, *(_CLIENTS_SEND if sender == "client" else _SERVERS_SEND)]
    if version == Version.V5:
        rules.append(_AUTH)
        if sender == "server":
            rules.append(_DISCONNECT)  # 3.14 of 3.1.1: there only the client disconnects.
    return {rule.kind: rule for rule in rules}


@cache
def rules(version: Version | None, sender: Sender) -> tuple[Rule | None, ...]:
    """The rule for each first byte; None: no packet begins with it."""
    table: list[Rule | None] = [None] * 256
    for kind, rule in sent_by(version, sender).items():
        for flags in _flags(kind, version):
            if rule.publish:
                rule = replace(rule, qos=flags >> 1 & 3, retain=bool(flags & 1), duplicate=bool(flags & 8))
            table[kind << 4 | flags] = rule
    return tuple(table)


def _flags(kind: PacketType, version: Version | None) -> tuple[int, ...]:
    if kind == PacketType.PUBLISH:
        # No QoS 3 [MQTT-3.3.1-4]; no DUP with QoS 0 [MQTT-3.3.1-2], which 3.1 does not forbid.
        duplicates = (8, 9) if version == Version.V3_1 else ()
        return (0, 1, 2, 3, 4, 5, 10, 11, 12, 13, *duplicates)
    if version == Version.V3_1:
        return tuple(range(16))  # It leaves flags unused, and sends PUBREL and SUBSCRIBE again with DUP.
    return (_FLAGS.get(kind, 0),)
