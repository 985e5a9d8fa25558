"""`leafcuttr_sdk.Groups`: consumer groups, whether their members are clients or plugins."""

from collections.abc import Mapping

import trio

from leafcuttr.errors import BrokerError, ErrorCode, GroupIdNotFound, InvalidGroupId
from leafcuttr.plugins.facade.committing import commit_offsets, committed_offsets
from leafcuttr.plugins.facade.consumer import protocol
from leafcuttr.plugins.facade.group_errors import error_of
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer
from leafcuttr.state.groups.members import Member
from leafcuttr.state.groups.states import GroupState
from leafcuttr.wire.errors import MalformedMessage
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.groups import CommittedOffset, GroupInfo, GroupMember


class GroupsView:
    """See `leafcuttr_sdk.Groups`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def names(self) -> list[str]:
        return sorted(group.group_id for group in self._broker.groups.all())

    def get(self, group: str) -> GroupInfo | None:
        """Raises CoordinatorLoadInProgress, CoordinatorNotAvailable."""
        try:
            found = self._broker.groups.find(group)
        except GroupIdNotFound:
            return None
        stable = found.state is GroupState.STABLE
        return GroupInfo(
            found.group_id,
            found.state.value,
            (found.protocol_name or "") if stable else "",
            [_member(each, stable) for each in found.members],
        )

    def committed(self, group: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Raises CoordinatorLoadInProgress, CoordinatorNotAvailable."""
        return committed_offsets(self._broker, group)

    def lag(self, group: str) -> Mapping[TopicPartition, int]:
        """Raises CoordinatorLoadInProgress, CoordinatorNotAvailable."""
        found: dict[TopicPartition, int] = {}
        for partition, committed in committed_offsets(self._broker, group).items():
            topic = self._broker.topics.by_name.get(partition.topic)
            if topic is not None and 0 <= partition.partition < len(topic.partitions):
                log = topic.partitions[partition.partition].log
                found[partition] = max(log.high_watermark - committed.offset, 0)
        return found

    async def commit(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        await trio.lowlevel.checkpoint()
        await commit_offsets(self._broker, group, Committer(), offsets)

    async def delete(self, group: str) -> None:
        await trio.lowlevel.checkpoint()
        if not group:
            raise InvalidGroupId("A group has a name.")
        answer = self._broker.groups.delete(group)
        code = answer if isinstance(answer, ErrorCode) else await answer
        if code:
            raise _told(code, group)


def _told(code: ErrorCode, group: str) -> BrokerError:
    match code:
        case ErrorCode.GROUP_ID_NOT_FOUND:
            return error_of(code, f"There is no group {group!r}.")
        case ErrorCode.NON_EMPTY_GROUP:
            return error_of(code, f"Group {group!r} has members.")
    return error_of(code)


def _member(member: Member, stable: bool) -> GroupMember:
    try:
        assignment = protocol.read_assignment(member.assignment) if stable else ()
    except MalformedMessage:
        assignment = ()  # a group of another kind, as that of Kafka Connect
    return GroupMember(member.member_id, member.client_id, member.client_host, assignment, member.instance_id)
