"""The bytes of `__consumer_offsets`: keys and values as Kafka 4.3 writes them, and back.

Written are offset keys of version 1 with values of 4 (1 if the commit has an expiry of its own), and group
keys of version 2 with values of 3. All versions that Kafka ever wrote are read.
"""

import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

from leafcuttr.state.groups.machine import Group
from leafcuttr.state.groups.members import Member
from leafcuttr.state.groups.offsets import NO_EXPIRY, OffsetAndMetadata
from leafcuttr.wire.codec import decode, writer
from leafcuttr.wire.errors import MalformedMessage
from leafcuttr.wire.messages.internal.group_metadata import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from leafcuttr.wire.messages.internal.offset_commit import OffsetCommitKey, OffsetCommitValue

_T = TypeVar("_T")
_VERSION: Final = struct.Struct(">h")
_OFFSET_KEYS: Final = (0, 1)
_GROUP_KEY: Final = 2
_OFFSET_VALUE: Final = 4
_OFFSET_VALUE_WITH_EXPIRY: Final = 1
_GROUP_VALUE: Final = 3
# An offset's value of version 4 with a topic id: up to the length of the metadata, and from behind them on.
_USUAL_HEAD: Final = struct.Struct(">hqiB")
_USUAL_TAIL: Final = struct.Struct(">q3s16s")
_USUAL_SIZE: Final = _USUAL_HEAD.size + _USUAL_TAIL.size
_ONE_TOPIC_ID: Final = b"\x01\x00\x10"  # one tagged field, of tag 0, of 16 bytes


class OffsetKey(NamedTuple):
    """The record is about one partition's offset."""

    group: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    """The record is about the group itself."""

    group: str


def offset_key(group: str, topic: str, partition: int) -> bytes:
    return _bytes(1, OffsetCommitKey(group=group, topic=topic, partition=partition))


def offset_value(committed: OffsetAndMetadata) -> bytes:
    version = _OFFSET_VALUE if committed.expire_timestamp == NO_EXPIRY else _OFFSET_VALUE_WITH_EXPIRY
    return _bytes(
        version,
        OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.commit_timestamp,
            expire_timestamp=committed.expire_timestamp,
            topic_id=committed.topic_id,
        ),
    )


def group_key(group: str) -> bytes:
    return _bytes(_GROUP_KEY, GroupMetadataKey(group=group))


def group_value(group: Group, assignments: Mapping[str, bytes], state_since_ms: int) -> bytes:
    """The group as it is, with these assignments; members without one are not part of this generation."""
    return _bytes(
        _GROUP_VALUE,
        GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation,
            protocol=group.protocol_name,
            leader=group.members.leader_id,
            current_state_timestamp=state_since_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(group.protocol_name),
                    assignment=assignments[member.member_id],
                )
                for member in group.members
                if member.member_id in assignments
            ],
        ),
    )


def parse_key(key: bytes) -> OffsetKey | GroupKey | None:
    """What a record is about; None for keys of other kinds of groups. Raises WireError."""
    version = _version(key)
    if version in _OFFSET_KEYS:
        found = _message(OffsetCommitKey, version, key)
        return OffsetKey(found.group, found.topic, found.partition)
    if version == _GROUP_KEY:
        return GroupKey(_message(GroupMetadataKey, version, key).group)
    return None


def parse_offset(value: bytes, written_at: int = -1) -> OffsetAndMetadata:
    """The value of a record at offset `written_at` of the log. Raises WireError."""
    if len(value) >= _USUAL_SIZE and value[1] == _OFFSET_VALUE and 0 < value[14] < 128:
        # What is written here, without the general way, which takes ten times as long: a start reads it for each.
        at = 14 + value[14]
        if len(value) - at == _USUAL_TAIL.size and value[at + 8 : at + 11] == _ONE_TOPIC_ID:
            _, offset, epoch, _ = _USUAL_HEAD.unpack_from(value)
            timestamp, _, topic_id = _USUAL_TAIL.unpack_from(value, at)
            try:
                metadata = value[15:at].decode() if at > 15 else ""
                return OffsetAndMetadata(offset, epoch, metadata, timestamp, NO_EXPIRY, topic_id, written_at)
            except UnicodeDecodeError:
                pass
    found = _message(OffsetCommitValue, _version(value), value)
    return OffsetAndMetadata(
        found.offset,
        found.leader_epoch,
        found.metadata,
        found.commit_timestamp,
        found.expire_timestamp,
        found.topic_id,
        written_at,
    )


def parse_group(value: bytes) -> GroupMetadataValue:
    """Raises WireError."""
    return _message(GroupMetadataValue, _version(value), value)


def members_of(value: GroupMetadataValue) -> list[Member]:
    """The members as the machine knows them; each speaks the one protocol that its group had chosen."""
    return [
        Member(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            session_timeout_ms=member.session_timeout,
            rebalance_timeout_ms=member.rebalance_timeout,
            protocols=((value.protocol or "", member.subscription),),
            assignment=member.assignment,
        )
        for member in value.members
    ]


def _bytes(version: int, message: Any) -> bytes:
    out = bytearray(_VERSION.pack(version))
    writer(type(message), version)(message, out, [])
    return bytes(out)


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise MalformedMessage(f"{len(data)} bytes are too few for a record of an internal topic")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _message(cls: type[_T], version: int, data: bytes) -> _T:
    return decode(cls, version, memoryview(data)[_VERSION.size :])
