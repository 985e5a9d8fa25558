"""FindCoordinator, versions 0 to 6: which broker keeps a group or a transactional id. It is always this one.

Version 1 added the key type and a message, 3 is flexible, 4 requests many keys at once (KIP-699), 5 and 6
allowed new errors and share groups. The first question for a group creates `__consumer_offsets`, the first for a
transactional id `__transaction_state`; unlike Kafka, which answers COORDINATOR_NOT_AVAILABLE meanwhile, it gets its
answer when the topic is there.

Share groups (type 2) are an INVALID_REQUEST, as where they are disabled.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import DESCRIBE_GROUP, DESCRIBE_TRANSACTION, Right, may
from leafcuttr.handlers.answers import address
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_GROUP: Final = 0
_TRANSACTION: Final = 1
_SHARE: Final = 2
_NEEDED: Final = {_GROUP: DESCRIBE_GROUP, _TRANSACTION: DESCRIBE_TRANSACTION}
_MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message "
    "was sent to an incompatible broker. See the broker logs for more details."
)


class _Found(NamedTuple):
    error: ErrorCode
    message: str | None = None
    node_id: int = -1
    host: str = ""
    port: int = -1


async def handle(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    if context.api_version >= 4:
        # Where one key is requested, the message also says NONE and explains share keys; here it does not.
        found = await _find(broker, context, request.key_type)
        message = "" if not found.error or request.key_type == _SHARE else found.message
        whole = Coordinator(
            node_id=found.node_id,
            host=found.host,
            port=found.port,
            error_code=found.error,
            error_message=message,
        )
        return FindCoordinatorResponse(
            coordinators=[
                replace(whole, key=key)
                if (right := _lacks(broker, context, request.key_type, key)) is None
                else Coordinator(key=key, node_id=-1, port=-1, error_code=right.error)
                async for key in Pace().over(request.coordinator_keys)
            ]
        )
    lacks = _lacks(broker, context, request.key_type, request.key)
    if lacks is not None:
        found = _Found(lacks.error, lacks.words)
    else:
        found = await _find(broker, context, request.key_type)
    return FindCoordinatorResponse(
        error_code=found.error,
        error_message=found.message or found.error.name,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _lacks(broker: Broker, context: RequestContext, key_type: int, key: str) -> Right | None:
    """The right that the client would need."""
    right = _NEEDED.get(key_type)
    return None if right is None or may(broker, context, right, key) else right


async def _find(broker: Broker, context: RequestContext, key_type: int) -> _Found:
    if key_type not in (_GROUP, _TRANSACTION):
        return _Found(ErrorCode.INVALID_REQUEST, _MALFORMED)
    try:
        if key_type == _GROUP:
            await broker.groups.ready()
        else:
            await broker.transactions.ready()
    except BrokerError as error:
        return _Found(error.code, "The coordinator is not available.")
    return _Found(ErrorCode.NONE, None, broker.node_id, *address(context))
