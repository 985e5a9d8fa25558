"""The formats that need a schema registry: their names in the API, and those of their types in the registry."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from leafcuttr_http.errors import ApiError
from leafcuttr_http.negotiation import SCHEMA_FORMATS

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.schemas import SchemaProvider

PROTOBUF: Final = "PROTOBUF"
ANY: Final = "schema"
"""Of streams: whatever type the schema of a record is of."""
TYPES: Final[Mapping[str, str | None]] = {
    "avro": "AVRO",
    "jsonschema": "JSON",
    "protobuf": PROTOBUF,
    ANY: None,
}
MEDIA_TYPES: Final[Mapping[str, str]] = {
    name: f"application/vnd.kafka.{name}.v2+json" for name in SCHEMA_FORMATS
}
PRODUCED: Final[Mapping[str, str]] = {
    f"application/vnd.kafka.{name}{version}+json": name for name in SCHEMA_FORMATS for version in (".v2", "")
}
"""The Content-Types of records with schemas."""
_RETRY: Final = (("retry-after", "1"),)


def no_registry(code: int, what: str) -> ApiError:
    """The answer where this broker has no registry."""
    return ApiError(
        code,
        f"{what} needs a schema registry, and this broker has none: lc.schema.registry.enable=true switches on the one "
        "of the plugin 'registry' (pip install 'leafcuttr[registry]').",
    )


def not_yet(why: str) -> ApiError:
    """The answer while the registry cannot answer."""
    return ApiError(503, f"The schema registry cannot answer at present: {why}", _RETRY)


def open_registry(broker: "Broker", code: int, what: str) -> "SchemaProvider":
    """The registry, if it can answer. Raises ApiError: `code` where there is none, 503 while it is not ready."""
    provider = broker.schemas
    if provider is None:
        raise no_registry(code, what)
    waits_for = provider.waits_for
    if waits_for is not None:
        raise not_yet(f"{waits_for}.")
    return provider
