"""The errors that stop a start, and, from the SDK, the family that answers requests.

Codec errors (`leafcuttr.wire.errors.WireError`) are of neither kind: a peer that sends bytes that are not Kafka gets no
answer, its connection closes.
"""

from leafcuttr_sdk.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    CorruptMessage,
    ErrorCode,
    FencedLeaderEpoch,
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    GroupIdNotFound,
    GroupMaxSizeReached,
    IllegalGeneration,
    InvalidConfig,
    InvalidFetchSessionEpoch,
    InvalidGroupId,
    InvalidPartitions,
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidRecordSet,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTimestamp,
    InvalidTopic,
    InvalidTxnState,
    MessageTooLarge,
    NonEmptyGroup,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    OutOfOrderSequence,
    PluginError,
    PolicyViolation,
    RecordError,
    RecordListTooLarge,
    StorageError,
    TopicAlreadyExists,
    TopicDeletionDisabled,
    TransactionCoordinatorFenced,
    UnknownLeaderEpoch,
    UnknownMemberId,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedCompressionType,
    UnsupportedVersion,
)

__all__ = [
    "BrokerError",
    "ConfigError",
    "CoordinatorLoadInProgress",
    "CoordinatorNotAvailable",
    "CorruptMessage",
    "ErrorCode",
    "FencedLeaderEpoch",
    "FetchSessionIdNotFound",
    "FetchSessionTopicIdError",
    "GateError",
    "GroupIdNotFound",
    "GroupMaxSizeReached",
    "IllegalGeneration",
    "InvalidConfig",
    "InvalidFetchSessionEpoch",
    "InvalidGroupId",
    "InvalidPartitions",
    "InvalidProducerEpoch",
    "InvalidRecord",
    "InvalidRecordSet",
    "InvalidReplicaAssignment",
    "InvalidReplicationFactor",
    "InvalidRequest",
    "InvalidTimestamp",
    "InvalidTopic",
    "InvalidTxnState",
    "MessageTooLarge",
    "NonEmptyGroup",
    "NotLeaderOrFollower",
    "OffsetOutOfRange",
    "OutOfOrderSequence",
    "PluginError",
    "PolicyViolation",
    "RecordError",
    "RecordListTooLarge",
    "StartError",
    "StorageError",
    "TopicAlreadyExists",
    "TopicDeletionDisabled",
    "TransactionCoordinatorFenced",
    "UnknownLeaderEpoch",
    "UnknownMemberId",
    "UnknownServerError",
    "UnknownTopicId",
    "UnknownTopicOrPartition",
    "UnsupportedCompressionType",
    "UnsupportedVersion",
]


class GateError(UnknownServerError):
    """A record filter or produce validator has failed, or cannot be had: the message, which names it, goes to the
    client."""


class ConfigError(Exception):
    """A setting that stops the start: the message names the key, the value, its source and what is allowed."""


class StartError(Exception):
    """The process cannot start: a busy port, a directory in use. The message is the one line the person sees."""
