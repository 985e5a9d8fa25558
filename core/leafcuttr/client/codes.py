"""Which error codes in a broker's answers pass by themselves, and what has to be done meanwhile."""

from typing import Final

from leafcuttr.errors import ErrorCode

NEW_LEADER: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""The metadata is out of date: the leader is to be looked up again. A topic that was created or moved a moment ago is
unknown to some brokers, so that is among them."""

LATER: Final = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
"""The same request to the same broker may succeed later."""

NEW_COORDINATOR: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_CONTROLLER}
)
"""The coordinator, or the controller, is to be looked up again."""

PASSING: Final = LATER | NEW_COORDINATOR
"""All that is retried of requests which are not about the leaders of partitions: there an unknown topic is a
mistake."""

PASSING_AT_LEADERS: Final = LATER | NEW_LEADER
