"""Topics, partitions and brokers, as REST proxy API v2 tells them."""

from typing import Any

from quart import Response
from quart_trio import QuartTrio

from leafcuttr_http import openapi
from leafcuttr_http.errors import ApiError, no_partition, no_topic
from leafcuttr_http.parts import Part, reply
from leafcuttr_http.proxy import Proxy
from leafcuttr_sdk.topics import PartitionInfo, TopicInfo


def attach(app: QuartTrio, proxy: Proxy) -> None:
    @app.get("/")
    async def root() -> Response:
        return reply({"cluster_id": proxy.broker.cluster.cluster_id, "version": proxy.broker.cluster.version})

    @app.get("/brokers")
    async def brokers() -> Response:
        return reply({"brokers": [proxy.broker.cluster.node_id]})

    @app.get("/topics")
    async def topics() -> Response:
        return reply(proxy.acting.topics.names())

    @app.get("/topics/<topic>")
    async def one_topic(topic: str) -> Response:
        found = _topic(proxy, topic)
        return reply(
            {
                "name": found.name,
                "configs": dict(proxy.acting.topics.configs(topic)),
                "partitions": [_partition(proxy, partition) for partition in found.partitions],
            }
        )

    @app.get("/topics/<topic>/partitions")
    async def partitions(topic: str) -> Response:
        return reply([_partition(proxy, partition) for partition in _topic(proxy, topic).partitions])

    @app.get("/topics/<topic>/partitions/<partition>")
    async def one_partition(topic: str, partition: str) -> Response:
        return reply(_partition(proxy, _found(proxy, topic, partition)))

    @app.get("/topics/<topic>/partitions/<partition>/offsets")
    async def offsets(topic: str, partition: str) -> Response:
        found = _found(proxy, topic, partition)
        if found.offline is not None:
            raise ApiError(40404, f"Partition {partition} of {topic!r} is offline: {found.offline}")
        return reply({"beginning_offset": found.log_start_offset, "end_offset": found.high_watermark})


def _topic(proxy: Proxy, name: str) -> TopicInfo:
    found = proxy.acting.topics.get(name)
    if found is None:
        raise no_topic(name)
    return found


def _found(proxy: Proxy, topic: str, partition: str) -> PartitionInfo:
    found = _topic(proxy, topic)
    if partition.isascii() and partition.isdigit() and len(partition) <= 10:
        for info in found.partitions:
            if info.partition == int(partition):
                return info
    raise no_partition(topic, partition)


def _partition(proxy: Proxy, info: PartitionInfo) -> dict[str, Any]:
    """There is one broker, and it leads what is not offline."""
    node = proxy.broker.cluster.node_id
    online = info.offline is None
    return {
        "partition": info.partition,
        "leader": node if online else -1,
        "replicas": [{"broker": node, "leader": online, "in_sync": online}],
    }


def paths() -> dict[str, Any]:
    topic, partition = openapi.TOPIC, openapi.PARTITION
    get = openapi.get
    return {
        "/": {"get": get("What answers here", openapi.ref("Root"))},
        "/brokers": {"get": get("The ids of the brokers: there is one", openapi.ref("Brokers"))},
        "/topics": {"get": get("The names of all topics", {"type": "array", "items": {"type": "string"}})},
        "/topics/{topic}": {
            "get": get(
                "A topic with its settings and partitions", openapi.ref("Topic"), 404, parameters=[topic]
            )
        },
        "/topics/{topic}/partitions": {
            "get": get(
                "The partitions of a topic",
                {"type": "array", "items": openapi.ref("Partition")},
                404,
                parameters=[topic],
            )
        },
        "/topics/{topic}/partitions/{partition}": {
            "get": get("A partition", openapi.ref("Partition"), 404, parameters=[topic, partition])
        },
        "/topics/{topic}/partitions/{partition}/offsets": {
            "get": get(
                "The first offset of a partition, and the next one to be written",
                openapi.ref("Offsets"),
                404,
                parameters=[topic, partition],
            )
        },
    }


def schemas() -> dict[str, Any]:
    whole, text = openapi.WHOLE, openapi.TEXT
    return {
        "Root": openapi.record(cluster_id=text, version=text),
        "Brokers": openapi.record(brokers={"type": "array", "items": whole}),
        "Replica": openapi.record(broker=whole, leader=openapi.FLAG, in_sync=openapi.FLAG),
        "Partition": openapi.record(
            partition=whole, leader=whole, replicas={"type": "array", "items": openapi.ref("Replica")}
        ),
        "Topic": openapi.record(
            name=text,
            configs={"type": "object", "additionalProperties": {"type": ["string", "null"]}},
            partitions={"type": "array", "items": openapi.ref("Partition")},
        ),
        "Offsets": openapi.record(beginning_offset=whole, end_offset=whole),
    }


PART = Part(attach, paths, schemas)
