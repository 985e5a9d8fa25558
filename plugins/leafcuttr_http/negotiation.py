"""The media types of the API. What a header says of them is read by `leafcuttr_sdk.web.negotiation`."""

from typing import Final

from leafcuttr_sdk.web.negotiation import JSON as JSON
from leafcuttr_sdk.web.negotiation import choose as choose
from leafcuttr_sdk.web.negotiation import media_type as media_type

V2: Final = "application/vnd.kafka.v2+json"
V2_JSON: Final = "application/vnd.kafka.json.v2+json"
V2_BINARY: Final = "application/vnd.kafka.binary.v2+json"
LINES: Final = "application/x-ndjson"
SCHEMA_FORMATS: Final = ("avro", "jsonschema", "protobuf")
"""Formats of the API that need a schema registry."""

# What metadata and errors are answered with; the first where the client does not care. The older names, without the
# version, are those that clients of the API before it send.
METADATA: Final = (V2, JSON, "application/vnd.kafka+json")
AS_JSON: Final = (JSON, V2, "application/vnd.kafka+json")
