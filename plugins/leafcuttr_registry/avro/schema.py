"""One Avro schema, as the registry gets it from the format."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from leafcuttr_registry.avro import tags
from leafcuttr_registry.avro.parser import Parsed, parse
from leafcuttr_registry.avro.printer import text_of
from leafcuttr_registry.avro.types import NamedType, RecordType
from leafcuttr_registry.budget import Budget
from leafcuttr_registry.inline_tags import TaggedPlace, Tags, change, tags_of
from leafcuttr_sdk.schemas import DataError, ResolvedReference, SchemaError

if TYPE_CHECKING:
    from leafcuttr_registry.avro.codec import AvroCodec

_LONGEST_MESSAGE: Final = 1000


class AvroSchema:
    """What a text and its references say."""

    def __init__(
        self, text: str, references: Mapping[str, ResolvedReference], *, validate: bool = True
    ) -> None:
        """Raises SchemaError."""
        self._text = text
        self._references = references
        self._validate = validate
        self._canonical: str | None = None
        try:
            self.parsed: Parsed = parse(text, references, Budget(), validate=validate)
        except RecursionError:
            raise SchemaError("too complex: types are nested too deep") from None
        except SchemaError as error:
            # Names in it may be as long as the text.
            if len(message := str(error)) <= _LONGEST_MESSAGE:
                raise
            raise SchemaError(f"{message[:_LONGEST_MESSAGE]}...", path=error.path, line=error.line) from None

    def __reduce__(self) -> tuple[object, ...]:
        """Types refer to one another in circles, and deeply: a pickle has the texts."""
        return _again, (self._text, dict(self._references), self._validate)

    @property
    def canonical(self) -> str:
        if self._canonical is None:
            self._canonical = self._printed(referenced=True)
        return self._canonical

    @property
    def record_name(self) -> str | None:
        """The full name. None where the schema is no record, as Confluent's clients have it."""
        root = self.parsed.root
        return root.name.full if isinstance(root, RecordType) else None

    @property
    def name(self) -> str | None:
        """The full name of a record, enum or fixed."""
        root = self.parsed.root
        return root.name.full if isinstance(root, NamedType) else None

    @property
    def needs_worker(self) -> bool:
        return False

    def places(self) -> Collection[TaggedPlace]:
        """See `inline_tags.Tagged`."""
        return dict(tags.places(tags.read(self.canonical))).keys()

    def tags(self) -> dict[TaggedPlace, list[str]]:
        """See `inline_tags.Tagged`."""
        return tags_of(tags.places(tags.read(self.canonical)))

    def with_tags(self, added: Tags, removed: Tags) -> str:
        """See `inline_tags.Tagged`."""
        schema = tags.read(self.canonical)
        change(dict(tags.places(schema)), added, removed)
        return tags.written(schema)

    def top_level_fields(self) -> list[str]:
        """The names of a record's fields."""
        root = self.parsed.root
        return [each.name for each in root.fields] if isinstance(root, RecordType) else []

    def message_name(self, message: Sequence[int] = (0,)) -> str | None:
        return self.record_name

    def normalized(self) -> str:
        return self._printed(referenced=True, normalized=True)

    def formatted(self, how: str) -> str:
        """`resolved`: with what the references define in place. It raises SchemaError where that is too long."""
        return self._printed(referenced=False) if how.lower() == "resolved" else self.canonical

    def codec(self, message: Sequence[int] = (0,)) -> "AvroCodec":
        from leafcuttr_registry.avro.codec import AvroCodec

        try:
            return AvroCodec(self.parsed.root)
        except RecursionError:
            raise DataError("the schema is nested too deep for its data to be read") from None

    def _printed(self, *, referenced: bool, normalized: bool = False) -> str:
        known = self.parsed.referenced if referenced else frozenset[str]()
        return text_of(self.parsed.root, known, Budget(), normalized=normalized)


def _again(text: str, references: Mapping[str, ResolvedReference], validate: bool) -> AvroSchema:
    return AvroSchema(text, references, validate=validate)
