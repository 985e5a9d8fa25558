"""JoinGroup, versions 0 to 9: become, or stay, a member of a group, and wait for its next generation.

Version 1 added the rebalance timeout (before, the session timeout serves), 4 the two-step join: the first
request of a member without id only gets one, with MEMBER_ID_REQUIRED (KIP-394). 5 added static membership
(KIP-345), 6 is flexible, 7 answers the protocol type and a null protocol on error (KIP-559), 8 takes a reason
(KIP-800), 9 lets a static leader skip the assignment (KIP-814). The rules are in `leafcuttr.state.groups`.
"""

from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import READ_GROUP, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.events import Join, JoinAnswer
from leafcuttr.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

_REBALANCE_TIMEOUT: Final = 1
_TWO_STEPS: Final = 4
_NULL_PROTOCOL: Final = 7
_SKIP_ASSIGNMENT: Final = 9


async def handle(broker: Broker, context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
    return _response(context.api_version, await _join(broker, context, request))


async def _join(broker: Broker, context: RequestContext, request: JoinGroupRequest) -> JoinAnswer:
    if not may(broker, context, READ_GROUP, request.group_id):
        return JoinAnswer(error=READ_GROUP.error, member_id="")
    settings = broker.settings
    if not request.group_id:
        return JoinAnswer(error=ErrorCode.INVALID_GROUP_ID, member_id=request.member_id)
    shortest = settings.int("group.min.session.timeout.ms")
    if not shortest <= request.session_timeout_ms <= settings.int("group.max.session.timeout.ms"):
        return JoinAnswer(error=ErrorCode.INVALID_SESSION_TIMEOUT, member_id=request.member_id)
    try:
        await broker.groups.ready()
        waiter = broker.groups.join(request.group_id, _event(context, request))
    except BrokerError as error:
        return JoinAnswer(error=error.code, member_id=request.member_id)
    if waiter.answer is None:
        # A broker that stops answers members that wait, before their connections are closed.
        broker.delayed_requests.add(waiter)
        try:
            await waiter.wait()
        finally:
            broker.delayed_requests.discard(waiter)
    if isinstance(waiter.answer, JoinAnswer):
        return waiter.answer
    return JoinAnswer(error=ErrorCode.NOT_COORDINATOR, member_id=request.member_id)


def _event(context: RequestContext, request: JoinGroupRequest) -> Join:
    version = context.api_version
    return Join(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=context.client.client_id or "",
        client_host=context.client.client_host,
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=(
            request.rebalance_timeout_ms if version >= _REBALANCE_TIMEOUT else request.session_timeout_ms
        ),
        two_steps=version >= _TWO_STEPS,
        can_skip_assignment=version >= _SKIP_ASSIGNMENT,
        reason=request.reason,
    )


def _response(version: int, answer: JoinAnswer) -> JoinGroupResponse:
    protocol_name = answer.protocol_name
    if protocol_name is None and version < _NULL_PROTOCOL:
        protocol_name = ""
    return JoinGroupResponse(
        error_code=answer.error,
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=protocol_name,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata
            )
            for member in answer.members
        ],
    )
