"""The endpoints below `/consumers`.

Every one of them takes the media types of records too, because clients of the API send them everywhere. Offsets that a
client commits are those of records it has read: the group goes on behind them, as with Kafka's own proxy.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import quote

from quart import Response, request
from quart_trio import QuartTrio

from leafcuttr_http.consumers import configuration, pages
from leafcuttr_http.consumers import request_bodies as bodies
from leafcuttr_http.consumers.instance import Instance
from leafcuttr_http.consumers.registry import Registry
from leafcuttr_http.errors import ApiError, no_partition, of_broker
from leafcuttr_http.negotiation import (
    JSON,
    METADATA,
    V2,
    V2_BINARY,
    V2_JSON,
    choose,
    media_type,
)
from leafcuttr_http.parts import Part, reply
from leafcuttr_http.proxy import Proxy
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.errors import BrokerError, ErrorCode
from leafcuttr_sdk.groups import CommittedOffset

_EMBEDDED: Final = tuple(configuration.FORMATS.values())
_OFFERS: Final = (*METADATA, *_EMBEDDED)
_TAKEN: Final = frozenset({JSON, *_OFFERS, "application/octet-stream", "application/x-www-form-urlencoded"})
"""Also what curl says of a body when it is not told better."""
_ONE: Final = "/consumers/<group>/instances/<name>"


def attach(app: QuartTrio, proxy: Proxy) -> None:
    registry = Registry(proxy)
    _life(app, proxy, registry)
    _targets(app, registry)
    _positions(app, proxy, registry)
    _offsets(app, proxy, registry)
    _records(app, proxy, registry)


def _life(app: QuartTrio, proxy: Proxy, registry: Registry) -> None:
    @app.post("/consumers/<group>")
    async def create(group: str) -> Response:
        config = configuration.config(
            await _body(),
            round(proxy.limits.consumer_idle_s * 1000),
            registry=proxy.broker.schemas is not None,
        )
        instance = await registry.create(group, config)
        if config.ignored:
            proxy.broker.logger.info(
                "consumer %s of group %s: these settings have no effect over HTTP: %s",
                instance.name,
                group,
                ", ".join(config.ignored),
            )
        base = (
            f"{request.host_url}consumers/{quote(group, safe='')}/instances/{quote(instance.name, safe='')}"
        )
        return _reply({"instance_id": instance.name, "base_uri": base})

    @app.delete(_ONE)
    async def delete(group: str, name: str) -> Response:
        registry.delete(group, name)
        return _done()


def _targets(app: QuartTrio, registry: Registry) -> None:
    @app.post(f"{_ONE}/subscription")
    async def subscribe(group: str, name: str) -> Response:
        with registry.use(group, name) as instance:
            wanted = bodies.subscription(await _body())
            if wanted is not None:
                instance.subscribe(wanted)
        return _done()

    @app.get(f"{_ONE}/subscription")
    async def subscription(group: str, name: str) -> Response:
        with registry.use(group, name) as instance:
            return _reply({"topics": sorted(instance.consumer.subscription)})

    @app.delete(f"{_ONE}/subscription")
    async def unsubscribe(group: str, name: str) -> Response:
        with registry.use(group, name) as instance:
            instance.unsubscribe()
        return _done()

    @app.post(f"{_ONE}/assignments")
    async def assign(group: str, name: str) -> Response:
        with registry.use(group, name) as instance:
            partitions = bodies.partitions(await _body())
            with _in_state():
                instance.consumer.assign(partitions)
        return _done()

    @app.get(f"{_ONE}/assignments")
    async def assignments(group: str, name: str) -> Response:
        with registry.use(group, name) as instance:
            return _reply({"partitions": [each._asdict() for each in sorted(instance.consumer.assignment)]})


def _positions(app: QuartTrio, proxy: Proxy, registry: Registry) -> None:
    @app.post(f"{_ONE}/positions")
    async def seek(group: str, name: str) -> Response:
        with registry.use(group, name) as instance:
            offsets = bodies.offsets(await _body())
            _check_assigned(instance, offsets)
            for partition, offset in offsets.items():
                instance.seek(partition, offset.offset)
        return _done()

    @app.post(f"{_ONE}/positions/beginning")
    async def seek_to_beginning(group: str, name: str) -> Response:
        return await _seek(proxy, registry, group, name, beginning=True)

    @app.post(f"{_ONE}/positions/end")
    async def seek_to_end(group: str, name: str) -> Response:
        return await _seek(proxy, registry, group, name, beginning=False)


async def _seek(proxy: Proxy, registry: Registry, group: str, name: str, *, beginning: bool) -> Response:
    with registry.use(group, name) as instance:
        partitions = bodies.partitions(await _body())
        _check_assigned(instance, partitions)
        _check_partitions(proxy, partitions)
        if partitions:
            await instance.seek_to_end(partitions, beginning=beginning)
    return _done()


def _offsets(app: QuartTrio, proxy: Proxy, registry: Registry) -> None:
    @app.post(f"{_ONE}/offsets")
    async def commit(group: str, name: str) -> Response:
        with registry.use(group, name) as instance:
            offsets = bodies.any_offsets(await _body())
            with _committing():
                if offsets is None:
                    await instance.commit()
                else:
                    # The offsets of records, as they were read; the group goes on behind them.
                    await instance.consumer.commit(
                        {
                            partition: CommittedOffset(each.offset + 1, each.metadata)
                            for partition, each in offsets.items()
                        }
                    )
        return _reply([])

    @app.get(f"{_ONE}/offsets")
    async def committed(group: str, name: str) -> Response:
        with registry.use(group, name) as instance:
            requested = bodies.any_partitions(await _body())
            if requested is None:
                requested = sorted(instance.consumer.assignment)
            _check_partitions(proxy, requested)
            found = await instance.consumer.committed(requested)
            return _reply(
                {
                    "offsets": [
                        {**partition._asdict(), "offset": each.offset, "metadata": each.metadata}
                        for partition, each in found.items()
                        if each is not None
                    ]
                }
            )


def _records(app: QuartTrio, proxy: Proxy, registry: Registry) -> None:
    @app.get(f"{_ONE}/records")
    async def read(group: str, name: str) -> Response:
        if request.method == "HEAD":
            # Quart answers HEAD by a GET without its body: records would be read, and no client would get them.
            raise ApiError(405, f"{request.path} does not take HEAD.", (("allow", "GET"),))
        with registry.use(group, name) as instance:
            content_type = _format(instance)
            timeout_ms = bodies.number(request.args.get("timeout"), "timeout")
            max_bytes = bodies.number(request.args.get("max_bytes"), "max_bytes")
            most = proxy.limits.consumer_response_bytes
            records = await instance.read(
                None if timeout_ms is None else timeout_ms / 1000,
                most if max_bytes is None else min(max_bytes, most),
            )
        return Response(records, 200, content_type=content_type)


def _format(instance: Instance) -> str:
    """The media type of the answer. Raises ApiError 40601 where the client wants another format than it requested when
    it made the consumer."""
    accept = request.headers.get("accept")
    own = configuration.FORMATS[instance.config.format]
    offers = (own, *METADATA)
    try:
        return choose(accept, offers)
    except ApiError:
        choose(accept, _OFFERS)
        raise ApiError(
            40601, f"This consumer reads records as {instance.config.format}: Accept {own} or {V2}."
        ) from None


async def _body() -> bytes:
    """Raises ApiError 415 for what cannot be JSON."""
    header = request.headers.get("content-type")
    body: bytes = await request.get_data(cache=False, as_text=False, parse_form_data=False)
    if header and body:
        found = media_type(header)
        if found.name not in _TAKEN or found.charset not in (None, "utf-8", "utf8", "us-ascii"):
            raise ApiError(
                415, f"The body is not read as {header!r}, but as {V2}, {V2_JSON}, {V2_BINARY} or {JSON}."
            )
    return body


def _reply(value: object) -> Response:
    return reply(value, offers=_OFFERS)


def _done() -> Response:
    answer = Response(b"", 204)
    del answer.headers["content-type"]
    return answer


def _check_assigned(instance: Instance, partitions: Iterable[TopicPartition]) -> None:
    for partition in partitions:
        if partition not in instance.consumer.assignment:
            raise ApiError(40903, f"{partition} is not assigned to this consumer at present.")


def _check_partitions(proxy: Proxy, partitions: list[TopicPartition]) -> None:
    for topic, partition in partitions:
        if partition >= proxy.acting.topics.partition_count(topic):
            raise no_partition(topic, partition)


@contextmanager
def _in_state() -> Iterator[None]:
    """The consumer's ValueError says that it is in a state in which this cannot be done."""
    try:
        yield
    except ValueError as error:
        raise ApiError(40903, str(error)) from None


@contextmanager
def _committing() -> Iterator[None]:
    try:
        yield
    except BrokerError as error:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise ApiError(40402, str(error)) from None
        raise of_broker(error) from None


PART: Final = Part(attach, pages.paths, pages.schemas)
