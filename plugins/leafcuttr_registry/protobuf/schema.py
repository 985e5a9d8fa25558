"""A schema of Protobuf that was read: its texts, its names, its codecs."""

from collections.abc import Collection, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool

from leafcuttr_registry.inline_tags import TaggedPlace, Tags, changes
from leafcuttr_registry.protobuf import tags, tree
from leafcuttr_registry.protobuf.codec import ProtobufCodec
from leafcuttr_registry.protobuf.link import Linked
from leafcuttr_registry.protobuf.model import MessageInfo
from leafcuttr_registry.protobuf.normalize import normalized
from leafcuttr_registry.protobuf.printer import Printer
from leafcuttr_registry.protobuf.serialized import serialized
from leafcuttr_sdk.schemas import DataError


class ProtobufSchema:
    """A schema that was read. It keeps its descriptors in a pool of its own."""

    def __init__(self, linked: Linked, pool: DescriptorPool | None) -> None:
        self._linked = linked
        self.pool = pool

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a schema with its pool cannot be pickled: send the text")

    @property
    def linked(self) -> Linked:
        return self._linked

    @property
    def _tree(self) -> tree.File:
        file = self._linked.source.tree
        assert file is not None
        return file

    @cached_property
    def canonical(self) -> str:
        """The text as Confluent's registry writes it."""
        return Printer().file(self._tree)

    @property
    def record_name(self) -> str | None:
        """The full name of the first message, of the first enum where there is none."""
        messages = self._top()
        if messages:
            return messages[0].name
        source = self._effective()
        return source.enums[0].name if source.enums else None

    @property
    def needs_worker(self) -> bool:
        return False

    def places(self) -> Collection[TaggedPlace]:
        """See `inline_tags.Tagged`."""
        return dict(tags.places(self._tree.body)).keys()

    def tags(self) -> dict[TaggedPlace, list[str]]:
        """See `inline_tags.Tagged`."""
        found = {place: tags.tags_in(place, options) for place, options in tags.places(self._tree.body)}
        return {place: known for place, known in found.items() if known}

    def with_tags(self, added: Tags, removed: Tags) -> str:
        """See `inline_tags.Tagged`. The file imports Confluent's options afterwards, which protoc asks for."""
        file = deepcopy(self._tree)
        places = dict(tags.places(file.body))
        for place, left in changes(places, added, removed, lambda place: tags.tags_in(place, places[place])):
            tags.set_tags(place, places[place], left)
            if left:
                tags.imports_meta(file)
        return Printer().file(file)

    def top_level_fields(self) -> list[str]:
        """The names of the fields of all messages that are in no other one, without those of oneofs, as Confluent's
        registry has it."""
        nodes = [each.node for each in self._top() if each.node is not None]
        fields = [each for node in nodes for each in node.body if isinstance(each, tree.Field)]
        return [each.name for each in fields if each.oneof is None]

    def message_name(self, indexes: Sequence[int] = (0,)) -> str:
        """The full name of the message that a path of indexes leads to. Raises DataError."""
        return self._message(indexes).name

    def normalized(self) -> str:
        return Printer().file(normalized(self._linked.universe, self._linked.source))

    def formatted(self, how: str) -> str:
        """`serialized`: base64 of the FileDescriptorProto; `ignore_extensions`: without extensions and custom options
        but Confluent's."""
        if how == "serialized":
            return serialized(self._linked.source.proto)
        if how == "ignore_extensions":
            return Printer(ignore_extensions=True).file(self._tree)
        return self.canonical

    def codec(self, message: Sequence[int] = (0,)) -> ProtobufCodec:
        name = self._message(message).name
        if self.pool is None:
            raise DataError(
                f"the message {name} is of a schema with more fields than protobuf's runtime can hold"
            )
        descriptor: Descriptor = self.pool.FindMessageTypeByName(name)
        return ProtobufCodec(self.pool, descriptor)

    def _effective(self) -> Any:
        """The file whose messages count: that which a file of nothing but one public import imports."""
        source = self._linked.source
        file = self._tree
        if not file.body and len(file.imports) == 1 and file.imports[0].kind == "public":
            return source.imports[0]
        return source

    def _top(self) -> list[MessageInfo]:
        source = self._effective()
        return [each for each in source.messages if each.parent is None and not each.synthetic]

    def _message(self, indexes: Sequence[int]) -> MessageInfo:
        messages = self._top()
        found: MessageInfo | None = None
        for index in indexes:
            if not 0 <= index < len(messages):
                raise DataError(f"the message indexes {list(indexes)[:16]} lead to no message of the schema")
            found = messages[index]
            messages = [each for each in found.children if not each.synthetic]
        if found is None:
            raise DataError("there are no message indexes")
        return found
