"""Producing records with schemas: the data that Confluent's serializers write, the id of the schema before them.

A request is right or wrong as a whole, as in the other formats. A large body is read twice: `value_schema` may stand
behind the records, and what is kept meanwhile is its text alone.
"""

from collections.abc import Generator, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_http import envelope
from leafcuttr_http.errors import ApiError
from leafcuttr_http.idempotency import Answer
from leafcuttr_http.produce import Records, add_converted, answer_of, check_partition, store
from leafcuttr_http.proxy import Proxy
from leafcuttr_http.records import Format
from leafcuttr_http.schemas.requested import Part, find, wanted
from leafcuttr_http.schemas.shared import Schemas
from leafcuttr_http.schemas.types import PROTOBUF, TYPES, open_registry
from leafcuttr_sdk.schema_framing import FIRST_MESSAGE, id_prefix, indexes
from leafcuttr_sdk.schema_work import WorkerCodec, WorkTime
from leafcuttr_sdk.schemas import DataError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from leafcuttr_sdk.schemas import SchemaCodec, SchemaProvider

_LACKS: Final[dict[Part, int]] = {"key": 42201, "value": 42202}


async def produce(
    proxy: Proxy, topic: str, partition: int | None, body: bytes, format: str
) -> tuple[Answer, int]:
    """Store the records of a body; the answer, and how many are stored. Raises ApiError where nothing is."""
    schemas, type = proxy.schemas, TYPES[format]
    assert type is not None
    provider = open_registry(proxy.broker, 41501, f"The format {format}")
    text = envelope.decode(body)
    limit = proxy.limits.record_bytes
    members: dict[str, object] = {}
    raws: Iterable[object]
    if len(text) <= min(envelope.AT_ONCE, limit):
        raws = envelope.at_once(text, members)
    else:
        await schemas.work(_read(text, limit, members))
        raws = envelope.in_steps(text, limit, {})
    keys, values = wanted(members, "key"), wanted(members, "value")
    # A text is looked up, and added, as the client may; an id may be that of any subject.
    of_client = proxy.acting.schemas or provider
    key_id, value_id = [
        await find(schemas, provider if part.text is None else of_client, topic, type, part)
        for part in (keys, values)
    ]
    records: Records = [], []
    await schemas.work(_encode(schemas, provider, format, (key_id, value_id), raws, partition, records))
    if partition is not None:
        await check_partition(proxy, topic, partition)
    return await answer_of(await store(proxy, topic, records), value_id=value_id, key_id=key_id)


def _read(text: str, limit: int, members: dict[str, object]) -> Generator[None, None, None]:
    """The members beside the records, and whether all of the body is JSON."""
    for _ in envelope.in_steps(text, limit, members):
        yield


def _encode(
    schemas: Schemas,
    provider: "SchemaProvider",
    format: str,
    ids: tuple[int | None, int | None],
    raws: Iterable[object],
    partition: int | None,
    records: Records,
) -> Generator[None, None, None]:
    """A record a step. Raises ApiError."""
    with ExitStack() as stack:
        time = WorkTime()
        of_keys = _encoder(stack, schemas, provider, "key", ids[0], time)
        of_values = _encoder(stack, schemas, provider, "value", ids[1], time)
        yield
        converted = Format(format, of_keys, of_values)
        for raw in raws:
            add_converted(raw, converted, partition, *records)
            yield


def _encoder(
    stack: ExitStack,
    schemas: Schemas,
    provider: "SchemaProvider",
    part: Part,
    id: int | None,
    time: WorkTime,
) -> "Callable[[Any], bytes]":
    if id is None:

        def refuse(value: Any) -> bytes:
            raise ApiError(
                _LACKS[part], f"needs a schema: the request has no {part}_schema and no {part}_schema_id"
            )

        return refuse
    try:
        schema, registered = provider.parsed(id), provider.get(id)
    except SchemaError as error:
        raise ApiError(42205, f"Schema {id}: {error}.") from None
    if schema is None or registered is None:
        raise ApiError(40801, f"Schema {id} is not there any more.")
    codec: SchemaCodec
    try:
        if schema.needs_worker:
            codec = WorkerCodec(schemas.broker, schema, FIRST_MESSAGE, time)
        else:
            codec = stack.enter_context(schemas.codecs.lent(id, schema, FIRST_MESSAGE))
    except DataError as error:
        raise ApiError(42205, f"Schema {id}: {error}.") from None
    prefix = id_prefix(id) + (indexes(FIRST_MESSAGE) if registered.format == PROTOBUF else b"")
    encode = codec.encode

    def encoded(value: Any) -> bytes:
        try:
            return prefix + encode(value)
        except DataError as error:
            raise ApiError(42203, f"is not of schema {id}: {error}") from None

    return encoded
