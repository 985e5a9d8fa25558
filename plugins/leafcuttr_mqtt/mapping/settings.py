"""What can be set about Kafka topics: which messages go to which, what becomes of those that none takes, the way down,
another cluster, and histories.

Settings are declared at each start, also where MQTT is off: what checks their values is imported when there are some.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr_mqtt.mapping.fields import DEFAULT_KEY, EGRESS_FIELDS, EGRESS_PREFIXES, KEY_FIELDS
from leafcuttr_sdk.settings import Setting, Type

if TYPE_CHECKING:
    from leafcuttr_mqtt.mapping.rules import Rules
    from leafcuttr_mqtt.mapping.templates import Template
    from leafcuttr_sdk.settings import Settings, Value

MAPPING: Final = "mqtt.topic.mapping.<mqtt filter>"
KEY: Final = "mqtt.topic.key"
KEYS: Final = "mqtt.topic.key.<mqtt filter>"
REFUSED_V3: Final = "mqtt.refused.v3"
DEAD_LETTERS: Final = "mqtt.dead.letter.topic"
BOOTSTRAP: Final = "mqtt.kafka.bootstrap.servers"
CLIENT_ID: Final = "mqtt.kafka.client.id"
PROPERTIES: Final = "mqtt.kafka.property.<librdkafka property>"
EGRESS: Final = "mqtt.topic.egress.<kafka topic>"
EGRESS_QOS: Final = "mqtt.egress.qos"
EGRESS_RETAIN: Final = "mqtt.egress.retain"
EGRESS_FILTERS: Final = "mqtt.egress.filters"
REPLAY: Final = "mqtt.replay.enable"

DEAD_LETTER, DROP, CLOSE = "dead-letter", "drop", "close"
OWN_PROPERTIES: Final = frozenset(
    {
        "acks",
        "bootstrap.servers",
        "client.id",
        "enable.idempotence",
        "max.in.flight",
        "max.in.flight.requests.per.connection",
        "message.send.max.retries",
        "message.timeout.ms",
        "delivery.timeout.ms",
        "metadata.broker.list",
        "partitioner",
        "request.required.acks",
        "retries",
        "transactional.id",
    }
)
"""Of librdkafka: what a PUBACK promises follows from these."""


def settings() -> Iterator[Setting]:
    """All settings of this part."""
    yield Setting(
        MAPPING,
        Type.STRING,
        None,
        "The Kafka topic for messages whose topics match the filter. {1} is what the first + or # of the filter stands "
        "for; slashes in it become dots. A message that several filters match is stored in each of their "
        "Kafka topics once.",
        check_member=why_no_mapping,
    )
    yield Setting(
        KEY,
        Type.STRING,
        DEFAULT_KEY,
        "The key of the records of all mappings that have none of their own: a text with the fields {topic} (the MQTT "
        "topic) and {client_id}. It decides on the partition. Empty: no key.",
        check=_why_no_key,
    )
    yield Setting(
        KEYS,
        Type.STRING,
        None,
        "The key of the records of one mapping, by its filter: as mqtt.topic.key, and with {1} for what the filter's "
        "first + or # stands for.",
        check_member=why_no_key_of,
        check_with_others=_why_nothing_has_it,
    )
    yield Setting(
        REFUSED_V3,
        Type.STRING,
        DEAD_LETTER,
        "What becomes of a message from a client of 3.1.1 or 3.1 that its Kafka topic can never take: those versions "
        "cannot say so, and the client would send it for ever. dead-letter: it is stored in mqtt.dead.letter.topic and "
        "acknowledged; drop: it is counted and acknowledged; close: the connection is closed.",
        choices=(DEAD_LETTER, DROP, CLOSE),
    )
    yield Setting(
        DEAD_LETTERS,
        Type.STRING,
        "mqtt-dead-letters",
        "The Kafka topic for refused messages, made at the first one.",
        check=_why_no_topic,
    )
    yield Setting(
        BOOTSTRAP,
        Type.STRING,
        None,
        "The addresses (host:port, separated by commas) of another Kafka cluster that mapped messages are stored in, "
        "with acks=all and an idempotent producer. Without it they are stored in this broker.",
        check=_why_no_servers,
    )
    yield Setting(CLIENT_ID, Type.STRING, "mqtt-kafka-proxy", "The client id in that cluster.")
    yield Setting(
        PROPERTIES,
        Type.PASSWORD,
        None,
        "Any other property of a Kafka client (librdkafka's or Java's names) for that cluster, as security.protocol.",
        check_member=_why_no_property,
    )
    yield Setting(
        EGRESS,
        Type.STRING,
        None,
        "The MQTT topic that new records of a Kafka topic are published to. {key} is the record's key, {header.<name>} "
        "one of its headers, {topic} and {partition} where it is. A record that lacks one of them is left out.",
        check_member=why_no_egress,
    )
    yield Setting(
        EGRESS_QOS, Type.INT, 1, "The QoS of messages that come from Kafka topics.", minimum=0, maximum=2
    )
    yield Setting(
        EGRESS_RETAIN, Type.BOOLEAN, False, "Whether messages that come from Kafka topics are retained."
    )
    yield Setting(
        EGRESS_FILTERS,
        Type.LIST,
        (),
        "The record filters that records of Kafka topics pass before they are published, in their order.",
    )
    yield Setting(
        REPLAY,
        Type.BOOLEAN,
        False,
        "Let clients of 5.0 subscribe to what is stored in mapped Kafka topics: $replay/ts/<milliseconds>/<filter> and "
        "$replay/offset/<offset>/<filter>.",
        check_with_others=_why_no_replay,
    )


class MappingOptions(NamedTuple):
    """The settings as the broker uses them."""

    rules: "Rules"
    refused_v3: str
    """`DEAD_LETTER`, `DROP` or `CLOSE`."""
    dead_letters: str
    bootstrap: str | None
    client_id: str
    properties: Mapping[str, str]
    egress: "Mapping[str, Template]"
    """Templates of MQTT topics by Kafka topic."""
    egress_qos: int
    egress_retain: bool
    egress_filters: tuple[str, ...]
    replay: bool


def read_options(values: "Settings") -> MappingOptions:
    from leafcuttr_mqtt.mapping.rules import make_rules

    mappings, keys = _texts(values.family(MAPPING)), _texts(values.family(KEYS))
    return MappingOptions(
        rules=make_rules(mappings, keys, values.text(KEY)),
        refused_v3=values.text(REFUSED_V3),
        dead_letters=values.text(DEAD_LETTERS),
        bootstrap=values.optional_text(BOOTSTRAP) or None,
        client_id=values.text(CLIENT_ID),
        properties=_texts(values.family(PROPERTIES)),
        egress={name: _egress(text) for name, text in _texts(values.family(EGRESS)).items()},
        egress_qos=values.int(EGRESS_QOS),
        egress_retain=values.bool(EGRESS_RETAIN),
        egress_filters=values.list(EGRESS_FILTERS),
        replay=values.bool(REPLAY),
    )


def why_no_mapping(topic_filter: str, value: "Value") -> str | None:
    """Why a mapping is refused, in one clause."""
    from leafcuttr_mqtt.mapping.rules import make_rule

    try:
        make_rule(topic_filter, str(value))
    except ValueError as error:
        return str(error)
    return None


def why_no_key_of(topic_filter: str, value: "Value") -> str | None:
    """Why a key is refused for the mapping of a filter, in one clause."""
    from leafcuttr_mqtt.mapping.rules import count_captures, why_no_mapped_filter

    return why_no_mapped_filter(topic_filter) or _why_no_key(value, count_captures(topic_filter))


def _why_nothing_has_it(name: str, values: "Settings") -> str | None:
    topic_filter = name.removeprefix(f"{KEY}.")
    if topic_filter in values.family(MAPPING):
        return None
    return f"no mapping has this filter: mqtt.topic.mapping.{topic_filter} is not set"


def _why_no_replay(_: str, values: "Settings") -> str | None:
    if values.bool(REPLAY) and values.optional_text(BOOTSTRAP):
        return f"it reads Kafka topics of this broker, and {BOOTSTRAP} has messages stored in another cluster"
    return None


def why_no_egress(kafka_topic: str, value: "Value") -> str | None:
    """Why a way down is refused, in one clause."""
    from leafcuttr_mqtt.mapping.kafka_names import why_no_target
    from leafcuttr_mqtt.topics.names import why_no_name

    wrong = why_no_target(kafka_topic)
    if wrong is not None:
        return wrong
    try:
        topic = _egress(str(value)).render(lambda _: "a")
    except ValueError as error:
        return str(error)
    if topic.startswith("$"):
        return "topics that begin with $ are the broker's own"
    wrong = why_no_name(topic)
    return None if wrong is None else f"it is no MQTT topic: {wrong}"


def _why_no_topic(value: "Value") -> str | None:
    from leafcuttr_mqtt.mapping.kafka_names import why_no_target

    return why_no_target(str(value))


def _egress(text: str) -> "Template":
    from leafcuttr_mqtt.mapping.templates import parse

    return parse(text, EGRESS_FIELDS, prefixes=EGRESS_PREFIXES)


def _why_no_key(value: "Value", captures: int = 0) -> str | None:
    from leafcuttr_mqtt.mapping.templates import parse

    try:
        parse(str(value), KEY_FIELDS, captures)
    except ValueError as error:
        return str(error)
    return None


def _why_no_servers(value: "Value") -> str | None:
    for each in str(value or "").split(","):
        host, colon, port = each.strip().rpartition(":")
        if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) <= 65_535):
            return "allowed are addresses as kafka-1:9092, separated by commas"
    return None


def _why_no_property(name: str, _: "Value") -> str | None:
    if name in OWN_PROPERTIES or name.endswith("_cb"):
        return f"{name} is set by the broker itself"
    return None


def _texts(values: "Mapping[str, Value]") -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}
