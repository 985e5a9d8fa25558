"""Clients, sessions, retained messages and mappings as plain data, which the admin port answers with. Times are
milliseconds since 1970. Payloads are not shown: the admin port has no authentication."""

from typing import TYPE_CHECKING, Any, Final

from leafcuttr_mqtt.mapping.records import fixed_headers
from leafcuttr_mqtt.packets.types import Version
from leafcuttr_mqtt.session.limits import NEVER_S
from leafcuttr_mqtt.topics.names import why_no_name
from leafcuttr_sdk.batches.partitioner import partition_of

if TYPE_CHECKING:
    from leafcuttr_mqtt.mapping.contracts import Writer
    from leafcuttr_mqtt.mapping.rules import Rules
    from leafcuttr_mqtt.mapping.targets import Target
    from leafcuttr_mqtt.messages import Message
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.session.types import Subscription

Row = dict[str, Any]
PROTOCOLS: Final = {Version.V3_1: "3.1", Version.V3_1_1: "3.1.1", Version.V5: "5.0"}


def client_row(client: "Client") -> Row:
    """One that is connected."""
    connection = client.connection
    assert connection is not None
    return {
        "client_id": client.client_id,
        "address": connection.peer,
        "listener": connection.listener,
        "protocol": PROTOCOLS[connection.version],
        "user_name": client.user_name,
        "connected_ms": client.connected_ms,
        "will": None if client.session.will is None else client.session.will.topic,
        **_session(client),
    }


def session_row(client: "Client") -> Row:
    """A session that its client may be away from."""
    connected = client.connection is not None
    return {
        "client_id": client.client_id,
        "connected": connected,
        "disconnected_ms": None if connected else client.session.disconnected_ms,
        **_session(client),
    }


def session_details(client: "Client") -> Row:
    """With the session's subscriptions."""
    found = session_row(client) if client.connection is None else {**client_row(client), "connected": True}
    found["subscriptions"] = [
        subscription_row(requested, each) for requested, each in client.session.subscriptions.items()
    ]
    return found


def _session(client: "Client") -> Row:
    session = client.session
    outbound = session.outbound
    oldest = outbound.oldest
    return {
        "expiry_s": None if session.expiry_s == NEVER_S else session.expiry_s,
        "subscriptions": len(session.subscriptions),
        "waiting": outbound.messages,
        "waiting_bytes": outbound.bytes,
        # Of a message that is in the log only it would have to be read.
        "oldest_ms": None if oldest is None or oldest.message is None else oldest.message.arrived_ms,
        "in_flight": outbound.under_way,
    }


def subscription_row(requested: str, subscription: "Subscription") -> Row:
    return {
        "filter": requested,
        "qos": subscription.qos,
        "no_local": subscription.no_local,
        "retain_as_published": subscription.retain_as_published,
        "identifier": subscription.identifier,
    }


def retained_row(message: "Message") -> Row:
    return {
        "topic": message.topic,
        "bytes": len(message.payload),
        "qos": message.qos,
        "client_id": message.client_id,
        "published_ms": message.arrived_ms,
        "expires_ms": message.expires_ms,
    }


def mapping_rows(rules: "Rules") -> list[Row]:
    return [
        {"filter": rule.filter, "kafka_topic": rule.kafka_topic.text, "key": rule.key.text or None}
        for rule in rules.rules
    ]


def mapping_test(writer: "Writer", topic: str, client_id: str, qos: int) -> Row:
    """What would become of a message. Raises ValueError, one clause, if there is no such topic."""
    wrong = why_no_name(topic)
    if wrong is not None:
        raise ValueError(wrong)
    # Topics that begin with `$` are the broker's own, and are never mapped.
    targets = () if topic.startswith("$") else writer.targets(topic)
    return {"topic": topic, "targets": [_target_row(each, topic, client_id, qos) for each in targets]}


def _target_row(target: "Target", topic: str, client_id: str, qos: int) -> Row:
    key = target.key(client_id)
    kafka = target.kafka
    headers = fixed_headers(topic, qos, False, client_id)
    return {
        "kafka_topic": kafka.name,
        "exists": kafka.count > 0,
        "refused": None if target.refusal is None else target.refusal.text,
        "key": None if key is None else key.decode(),
        "partition": None if key is None or not kafka.count else partition_of(key, kafka.count),
        "headers": {name: (value or b"").decode() for name, value in headers},
    }
