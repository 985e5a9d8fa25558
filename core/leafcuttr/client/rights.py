"""What a cluster refuses for want of a right: the operation, the resource, and the command that gives it.

A response has no more than a code, and at most a text that names nothing (`Group authorization failed.`). Which right a
request needs is Kafka's: "Operations and Resources on Protocols" in its documentation of authorization. Who the client
is to the cluster no response says.
"""

from shlex import quote
from typing import Any, Final, NamedTuple

from leafcuttr.client.errors import refusal
from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr_sdk.security import Operation

_LONGEST: Final = 255
"""Characters of a name in a line; topics have at most 249."""


class _Type(NamedTuple):
    word: str
    option: str
    includes: str
    """The rights that include DESCRIBE."""


_TYPES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _Type("topic", "--topic", "read and write include it"),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _Type("group", "--group", "read includes it"),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _Type(
        "transactional id", "--transactional-id", "write includes it"
    ),
}
_UNNAMED: Final = frozenset(
    {
        "authorization failed",
        "topic authorization failed",
        "group authorization failed",
        "cluster authorization failed",
        "transactional id authorization failed",
    }
)
"""What brokers say where they say nothing; any other text has a reason of its own, and stays."""
_ON_GROUPS: Final = {
    "AddOffsetsToTxnRequest": Operation.READ,
    "OffsetCommitRequest": Operation.READ,
    "TxnOffsetCommitRequest": Operation.READ,
}
"""By the name of the request, so that none is imported for this; others need DESCRIBE."""
_ON_TRANSACTIONS: Final = {"DescribeTransactionsRequest": Operation.DESCRIBE}
"""Others are of producers, and need WRITE."""
_ON_TOPICS: Final = {
    "AlterConfigsRequest": Operation.ALTER_CONFIGS,
    "CreatePartitionsRequest": Operation.ALTER,
    "CreateTopicsRequest": Operation.CREATE,
    "DescribeProducersRequest": Operation.READ,
    "IncrementalAlterConfigsRequest": Operation.ALTER_CONFIGS,
}
"""Others need DESCRIBE."""
_ON_CLUSTER: Final = {
    "CreateTopicsRequest": Operation.CREATE,
    "InitProducerIdRequest": Operation.IDEMPOTENT_WRITE,
    "ListGroupsRequest": Operation.DESCRIBE,
}


def said(code: int, text: str | None, name: str, *operations: Operation) -> str | None:
    """What a refusal with this code says of the resource of this name, which needed these operations; the broker's own
    text for any other code, and where it gives a reason. Of the cluster the name counts for nothing."""
    if not is_for_want(code, text):
        return text
    does = " or ".join(operations)
    words = " ".join(each.lower().replace("_", "-") for each in operations)
    if (type_ := _TYPES.get(ErrorCode(code))) is None:
        return f"the client may not {does} on the cluster (allowed by: leafcuttr acls add PRINCIPAL {words} --cluster)"
    if not name.isprintable() or len(name) > _LONGEST:
        return f"the client may not {does} {type_.word} {name[:_LONGEST]!r}"
    more = f"; {type_.includes}" if operations == (Operation.DESCRIBE,) else ""
    return (
        f"the client may not {does} {type_.word} {name}"
        f" (allowed by: leafcuttr acls add PRINCIPAL {words} {type_.option} {quote(name)}{more})"
    )


def is_for_want(code: int, text: str | None) -> bool:
    """Whether a refusal is for want of a right, and names none."""
    has_code = code in _TYPES or code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return has_code and (not text or text.rstrip(".").lower() in _UNNAMED)


def said_of_request(request: Any, code: int, text: str | None, key: str = "") -> str | None:
    """As `said`. `key` is what the request's coordinator was found by."""
    if not is_for_want(code, text):
        return text
    kind = type(request).__name__
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        operation = _ON_CLUSTER.get(kind)
        return text if operation is None else said(code, text, "", operation)
    if code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return said(code, text, getattr(request, "group_id", key), on_group(request))
    if code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return said(code, text, getattr(request, "transactional_id", None) or key, on_transaction(request))
    names = _topics_of(request)
    return said(code, text, names[0], on_topic(request)) if len(names) == 1 else text


def on_group(request: Any) -> Operation:
    return _ON_GROUPS.get(type(request).__name__, Operation.DESCRIBE)


def on_transaction(request: Any) -> Operation:
    return _ON_TRANSACTIONS.get(type(request).__name__, Operation.WRITE)


def on_topic(request: Any) -> Operation:
    return _ON_TOPICS.get(type(request).__name__, Operation.DESCRIBE)


def _topics_of(request: Any) -> list[str]:
    """The names of those that are created or changed."""
    found = [getattr(each, "name", None) for each in getattr(request, "topics", None) or ()]
    found += [getattr(each, "resource_name", None) for each in getattr(request, "resources", None) or ()]
    return [name for name in found if name]


def said_of_partition(code: int, place: object, topic: str, operation: Operation) -> str | None:
    """What a request is told that is answered with this code for a partition of the topic, which `place` names. None
    where the whole request lacks a right, which is said of each partition: see `said_of_request`."""
    if code != ErrorCode.TOPIC_AUTHORIZATION_FAILED and is_for_want(code, None):
        return None
    return str(topic_refusal(code, place, topic, operation))


def topic_refusal(code: int, place: object, topic: str, *operations: Operation) -> BrokerError:
    """Of a topic, or a partition of it, which `place` names."""
    return refusal(code, f"{place}: {said(code, None, topic, *operations) or refusal(code)}")
