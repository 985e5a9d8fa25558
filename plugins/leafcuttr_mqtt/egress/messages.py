"""The message that a record of a Kafka topic becomes on its way down. No I/O.

It carries the Kafka topics that it has come from, and is stored in none of them again: so no message goes round in a
circle, whatever mappings lead back. A record that this broker has stored because of a mapping has been published to its
topic already, and is not published there again.
"""

from enum import Enum
from typing import Final

from leafcuttr_mqtt.mapping.records import TOPIC, set_properties
from leafcuttr_mqtt.mapping.rules import Rules
from leafcuttr_mqtt.mapping.templates import Template
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.topics.names import why_no_name, why_too_deep
from leafcuttr_sdk.records import StoredRecord

_HEADER: Final = "header."


class Left(Enum):
    """Why a record is left out. `label` is for metrics."""

    NO_FIELD = "it lacks what the template names, or it is no text"
    NO_TOPIC = "what the template makes of it is no MQTT topic"
    PUBLISHED = "it was published to that topic when it came"
    EXPIRED = "it has expired"
    FILTERED = "a filter has dropped it"
    SET_ASIDE = "a filter has set it aside"

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")


class Way:
    """The way down from one Kafka topic."""

    def __init__(self, template: Template, qos: int, retain: bool, rules: Rules) -> None:
        self._template = template
        self._qos = qos
        self._retain = retain
        self._rules = rules

    def message(self, record: StoredRecord, now_ms: int, topic: str | None = None) -> Message | Left:
        """What a record becomes, or why it is left out. A `topic` that a filter has named counts before the
        template."""
        headers = dict(record.headers)  # of two with the same name the last one counts
        if topic is None:
            try:
                topic = self._template.render(lambda field: _value(field, record, headers))
            except ValueError:
                return Left.NO_FIELD
        if why_no_name(topic) or topic[0] == "$" or why_too_deep(topic):
            return Left.NO_TOPIC
        if headers.get(TOPIC) == topic.encode() and self._leads_back(topic, record.topic):
            return Left.PUBLISHED
        message = Message(topic, record.value or b"", self._qos, self._retain)
        set_properties(message, record)
        message.arrived_ms = now_ms
        if message.expires_ms is not None and message.expires_ms <= now_ms:
            return Left.EXPIRED
        if record.topic not in message.via:
            message.via = (*message.via, record.topic)
        return message

    def _leads_back(self, topic: str, kafka_topic: str) -> bool:
        return any(each.kafka_topic == kafka_topic for each in self._rules.destinations(topic))


def _value(field: str, record: StoredRecord, headers: dict[str, bytes | None]) -> str:
    """Raises ValueError for what is not there, or no UTF-8."""
    if field == "topic":
        return record.topic
    if field == "partition":
        return str(record.partition)
    value = record.key if field == "key" else headers.get(field.removeprefix(_HEADER))
    if value is None:
        raise ValueError(field)
    return value.decode()
