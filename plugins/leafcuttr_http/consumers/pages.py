"""The pages of `/consumers` in the OpenAPI document."""

from collections.abc import Mapping
from typing import Any, Final

from leafcuttr_http import openapi
from leafcuttr_http.consumers.configuration import FORMATS
from leafcuttr_http.consumers.kafka_settings import HONOURED, KAFKA
from leafcuttr_http.negotiation import JSON, METADATA, V2, V2_BINARY, V2_JSON
from leafcuttr_http.openapi import TEXT, WHOLE, record, ref

_GROUP: Final = {
    "name": "group",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1},
}
_NAME: Final = {**_GROUP, "name": "name", "description": "The instance_id that the consumer was given."}
_BODIES: Final = (V2, JSON, V2_JSON, V2_BINARY)
_NUMBERS: Final = (
    "consumer.request.timeout.ms", "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes",
    "max.poll.interval.ms", "max.poll.records", "requestWaitMs", "responseMinBytes", "session.timeout.ms",
)  # fmt: skip
_BAD: Final = (400, 404, 408, 409, 413, 415, 422, 503)


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _post(
    summary: str, body: str, answer: Mapping[str, Any] | None = None, *, needed: bool = True
) -> dict[str, Any]:
    return {
        "summary": summary,
        "parameters": [_GROUP, _NAME],
        "requestBody": {"required": needed, "content": openapi.content(ref(body), _BODIES)},
        "responses": openapi.answers(answer, (*_BAD, 500), status=200 if answer else 204),
    }


def _get(summary: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    return openapi.get(summary, answer, 400, 404, 408, 413, 415, 422, 500, 503, parameters=[_GROUP, _NAME])


def _delete(summary: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "parameters": [_GROUP, _NAME],
        "responses": openapi.answers(None, (404,), status=204),
    }


def _records() -> dict[str, Any]:
    def query(name: str, description: str) -> dict[str, Any]:
        return {
            "name": name,
            "in": "query",
            "required": False,
            "description": description,
            "schema": {"type": "integer"},
        }

    return {
        "summary": "Read the next records, and wait for some if there are none",
        "parameters": [
            _GROUP,
            _NAME,
            query(
                "timeout",
                "Milliseconds to wait at most; the consumer's consumer.request.timeout.ms bounds it.",
            ),
            query("max_bytes", "Bytes of keys and values at most, but for a first record that has more."),
        ],
        "responses": openapi.answers(
            _list(ref("ConsumedRecord")),
            (404, 409, 422, 500, 503),
            types=(*METADATA, *FORMATS.values()),
        ),
    }


def paths() -> dict[str, Any]:
    one = "/consumers/{group}/instances/{name}"
    create = {
        **_post("Create a consumer", "ConsumerConfig", ref("ConsumerCreated"), needed=False),
        "parameters": [_GROUP],
    }
    return {
        "/consumers/{group}": {"post": create},
        one: {"delete": _delete("Delete a consumer: it leaves its group")},
        f"{one}/subscription": {
            "post": _post("Subscribe to topics, or to those that match a pattern", "ConsumerSubscription"),
            "get": _get("The topics that the consumer is subscribed to", ref("ConsumerTopics")),
            "delete": _delete("Unsubscribe"),
        },
        f"{one}/assignments": {
            "post": _post("Read these partitions, without being a member of the group", "ConsumerPartitions"),
            "get": _get("The partitions that the consumer reads", ref("ConsumerPartitions")),
        },
        f"{one}/positions": {"post": _post("Read on at these offsets", "ConsumerOffsets")},
        f"{one}/positions/beginning": {
            "post": _post("Read these partitions from their beginnings on", "ConsumerPartitions")
        },
        f"{one}/positions/end": {
            "post": _post("Read these partitions from their ends on", "ConsumerPartitions")
        },
        f"{one}/offsets": {
            "post": _post(
                "Commit that these records have been read; without a body, or with {}, all that have been",
                "ConsumerCommit",
                {"type": "array", "maxItems": 0},
                needed=False,
            ),
            "get": _get(
                "The offsets that the group has committed; the partitions may be named in a body as for assignments",
                ref("ConsumerOffsets"),
            ),
        },
        f"{one}/records": {"get": _records()},
    }


def schemas() -> dict[str, Any]:
    partition = openapi.whole(2**31 - 1)
    offset = openapi.whole(2**63 - 2)
    name = {"type": "string", "minLength": 1}
    number = {"type": ["integer", "string", "null"]}
    flag = {"enum": [True, False, "true", "false", None]}
    words = {"type": ["string", "integer", "null"], "maxLength": 255}
    offsets = _list(
        {
            "type": "object",
            "properties": {
                "topic": name,
                "partition": partition,
                "offset": offset,
                "metadata": {"type": ["string", "null"]},
            },
            "required": ["topic", "partition", "offset"],
            "additionalProperties": False,
        }
    )
    return {
        "ConsumerConfig": {
            "type": ["object", "null"],
            "description": "Settings of this API, and of Kafka's consumer; what says nothing more has no effect here.",
            "properties": {
                **{setting: {} for setting in sorted(KAFKA - HONOURED)},
                "name": {**words, "minLength": 1},
                "id": {**words, "description": "The older name of name."},
                "format": {"enum": [*FORMATS, None]},
                "auto.offset.reset": {"enum": ["earliest", "latest", "none", None]},
                "auto.commit.enable": flag,
                "enable.auto.commit": {**flag, "description": "Kafka's name of auto.commit.enable."},
                "isolation.level": {"enum": ["read_uncommitted", "read_committed", None]},
                "client.id": words,
                "group.instance.id": {**words, "pattern": "^[a-zA-Z0-9._-]{1,249}$"},
                **dict.fromkeys(_NUMBERS, number),
            },
            "additionalProperties": False,
        },
        "ConsumerCreated": record(instance_id=TEXT, base_uri=TEXT),
        "ConsumerSubscription": {
            "type": "object",
            "description": "One of the two; with neither nothing changes.",
            "properties": {
                "topics": {"type": ["array", "null"], "items": name},
                "topic_pattern": {"type": ["string", "null"], "minLength": 1},
            },
            "additionalProperties": False,
        },
        "ConsumerCommit": {
            "type": ["object", "null"],
            "properties": {"offsets": {**offsets, "type": ["array", "null"]}},
            "additionalProperties": False,
        },
        "ConsumerTopics": record(topics=_list(TEXT)),
        "ConsumerPartitions": record(partitions=_list(record(topic=name, partition=partition))),
        "ConsumerOffsets": record(offsets=offsets),
        "ConsumedRecord": {
            "type": "object",
            "properties": {
                "topic": TEXT,
                "key": {"description": "Any JSON; in the binary format base64 or null"},
                "value": {"description": "As the key; null is a tombstone"},
                "partition": WHOLE,
                "offset": WHOLE,
                "timestamp": WHOLE,
                "headers": _list(ref("Header")),
            },
            "required": ["topic", "key", "value", "partition", "offset", "timestamp"],
            "additionalProperties": False,
        },
    }
