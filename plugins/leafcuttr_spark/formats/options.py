"""What the keys or the values of a topic are, as options say it. Files are read here, so that tasks have the texts."""

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from leafcuttr_spark.options import Option, OptionError, Values

REGISTRY_PREFIX: Final = "schema.registry."
LARGEST_FILE: Final = 16 << 20
"""Bytes of a schema."""


class FormatName(Enum):
    """The formats, by the names that options have for them."""

    BYTES = "bytes"
    TEXT = "text"
    JSON = "json"
    AVRO = "avro"
    JSON_SCHEMA = "json-schema"
    PROTOBUF = "protobuf"

    @property
    def has_schema(self) -> bool:
        return self not in (FormatName.BYTES, FormatName.TEXT)


class IdPlace(Enum):
    """Where the id of a record's schema is."""

    ANY = "any"
    PAYLOAD = "payload"
    HEADER = "header"
    NONE = "none"


@dataclass(frozen=True)
class FormatOptions:
    """Can be pickled."""

    name: FormatName = FormatName.BYTES
    schema: bytes | None = None
    """The text of the schema, or a descriptor set; None: the latest version of the subject."""
    subject: str | None = None
    """None: the topic's name with `-key` or `-value`."""
    id: IdPlace = IdPlace.ANY
    message: str | None = None
    """The full name of a message of Protobuf; None: the first one."""
    registry: Mapping[str, str] = field(default_factory=dict)
    """Settings of a client of a registry; without any there is none."""

    @property
    def has_ids(self) -> bool:
        """Whether records name their schemas."""
        return (
            self.id is not IdPlace.NONE
            and self.name.has_schema
            and self.name is not FormatName.JSON
            and bool(self.registry)
        )

    @property
    def needs_headers(self) -> bool:
        return self.has_ids and self.id in (IdPlace.ANY, IdPlace.HEADER)


_FORMATS: Final = " or ".join(f"`{one.value}`" for one in FormatName)
_IDS: Final = " or ".join(f"`{one.value}`" for one in IdPlace)


def format_options_table(part: str) -> tuple[Option, ...]:
    """The rows of the options of keys, or of values."""
    return (
        Option(
            f"{part}.format",
            _FORMATS,
            FormatName.BYTES.value,
            f"What the {part}s are: the column `{part}` has what they decode to, a struct for records and objects.",
        ),
        Option(
            f"{part}.schema",
            "text, or path of a file",
            "of a registry: the latest version of the subject",
            "The schema that rows have, whatever schemas the records were written by. Avro: its JSON. `json`: columns"
            " as Spark's DDL, or a JSON Schema. `json-schema`: a JSON Schema. `protobuf`: a descriptor set, as"
            " `protoc --include_imports --descriptor_set_out` writes it.",
        ),
        Option(
            f"{part}.subject",
            "string",
            f"the topic's name and `-{part}`",
            "The subject of the registry whose latest version is the schema.",
        ),
        Option(
            f"{part}.id",
            _IDS,
            IdPlace.ANY.value,
            "Where the id of a record's schema is, as Confluent's serializers write it: in front of the payload, or in"
            " a header; with `any` in the header if the record has it. `none`, or no registry: the payload is all there"
            " is, and the schema has to be given.",
        ),
        Option(
            f"{part}.message",
            "full name",
            "the first message",
            "Which message of a schema of Protobuf.",
        ),
    )


REGISTRY_OPTIONS: Final = (
    Option(
        "schema.registry.url",
        "URLs, separated by commas",
        "",
        "The schema registry: any with Confluent's API.",
    ),
    Option(
        "schema.registry.*",
        "",
        "",
        "Settings of Confluent's clients of a registry: `schema.registry.basic.auth.user.info`,"
        " `schema.registry.ssl.ca.location` and others.",
    ),
    Option(
        "schema.registry.wait.ms",
        "long",
        "600000",
        "So long a task waits for a registry that is away; then it fails. No record is in error because of it.",
    ),
)


def read_format(values: Values, part: str, registry: Mapping[str, str]) -> FormatOptions:
    """The options of keys, or of values. Raises OptionError."""
    name = FormatName(
        values.one_of(f"{part}.format", FormatName.BYTES.value, (one.value for one in FormatName))
    )
    given = [
        option.name
        for option in format_options_table(part)[1:]
        if values.has(option.name) and values.text(option.name)
    ]
    if given and not name.has_schema:
        raise OptionError(
            f"the option {given[0]} is for a format with a schema; {part}.format is {name.value}"
        )
    text = values.text(f"{part}.schema")
    options = FormatOptions(
        name=name,
        schema=schema_of(f"{part}.schema", text) if text else None,
        subject=values.text(f"{part}.subject") or None,
        id=IdPlace(values.one_of(f"{part}.id", IdPlace.ANY.value, (one.value for one in IdPlace))),
        message=values.text(f"{part}.message") or None,
        registry=registry if name.has_schema else {},
    )
    if name.has_schema and options.schema is None and not options.has_ids:
        wanted = f"{part}.schema" if name is FormatName.JSON else f"{part}.schema, or schema.registry.url"
        raise OptionError(f"the format {name.value} needs the option {wanted}")
    if name is FormatName.JSON_SCHEMA and not options.has_ids and options.id is not IdPlace.NONE:
        raise OptionError(
            "the format json-schema needs the option schema.registry.url; json takes a schema of its own"
        )
    return options


class LargeSchemaError(OSError):
    """The file of a schema has more than `LARGEST_FILE` bytes."""


def read_schema_file(path: Path) -> bytes:
    """At most `LARGEST_FILE` bytes. Raises LargeSchemaError, and OSError where it cannot be read."""
    with path.open("rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise LargeSchemaError(errno.EFBIG, f"it is larger than {LARGEST_FILE} bytes")
    return data


def schema_of(option: str, text: str) -> bytes:
    """The schema that an option gives: as text, or as the path of a file. Raises OptionError."""
    # A path has neither lines nor what every schema has.
    if any(sign in text for sign in '{}<>\n"') or " " in text.strip():
        return text.encode()
    path = Path(text).expanduser()
    try:
        return read_schema_file(path)
    except LargeSchemaError:
        raise OptionError(
            f"the option {option} names {text}, which is larger than {LARGEST_FILE} bytes"
        ) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise OptionError(f"the option {option} names the file {text}, which cannot be read: {why}") from None
