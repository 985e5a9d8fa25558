"""Fields as far as they are compared."""

from typing import NamedTuple

from leafcuttr_registry.protobuf.model import REPEATED, SCALAR_NAMES, EnumInfo, FieldInfo, MessageInfo


class Member(NamedTuple):
    """A field as far as it is compared."""

    info: FieldInfo
    name: str
    label: str | None
    """As the text has it; of maps none."""
    oneof: str | None
    required: bool
    repeated: bool
    delimited: bool
    """A group, or a message that is encoded as one."""
    closed: bool
    """Of a closed enum."""

    @property
    def type(self) -> str:
        """For people."""
        kind = self.info.type
        if isinstance(kind, MessageInfo) and kind.map_entry:
            return "map"
        return kind.name if kind is not None else SCALAR_NAMES[self.info.proto.type]


def members(message: MessageInfo) -> dict[int, Member]:
    """The fields of a message by number."""
    found: dict[int, Member] = {}
    for info in message.fields.values():
        node, proto = info.node, info.proto
        is_map = isinstance(info.type, MessageInfo) and info.type.map_entry
        label = node.label if node is not None else ("repeated" if proto.label == REPEATED else None)
        oneof = None
        if proto.HasField("oneof_index") and not proto.proto3_optional:
            oneof = message.proto.oneof_decl[proto.oneof_index].name
        closed = isinstance(info.type, EnumInfo) and info.type.closed
        found[proto.number] = Member(
            info,
            proto.name,
            None if is_map else label,
            oneof,
            info.required,
            proto.label == REPEATED,
            info.delimited,
            closed,
        )
    return found
