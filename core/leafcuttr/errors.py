"""The errors that stop a start, and, from the SDK, the family that answers requests.

Codec errors (`leafcuttr.wire.errors.WireError`) are of neither kind: a peer that sends bytes that are not Kafka gets no
answer, its connection closes.
"""

# `as` offers a name to other modules, so that no second list has to.
from leafcuttr_sdk.errors import (  # noqa: I001
    BrokerError as BrokerError,
    CoordinatorLoadInProgress as CoordinatorLoadInProgress,
    CoordinatorNotAvailable as CoordinatorNotAvailable,
    CorruptMessage as CorruptMessage,
    ErrorCode as ErrorCode,
    FencedLeaderEpoch as FencedLeaderEpoch,
    FetchSessionIdNotFound as FetchSessionIdNotFound,
    FetchSessionTopicIdError as FetchSessionTopicIdError,
    GroupIdNotFound as GroupIdNotFound,
    GroupMaxSizeReached as GroupMaxSizeReached,
    IllegalGeneration as IllegalGeneration,
    InvalidConfig as InvalidConfig,
    InvalidFetchSessionEpoch as InvalidFetchSessionEpoch,
    InvalidGroupId as InvalidGroupId,
    InvalidPartitions as InvalidPartitions,
    InvalidProducerEpoch as InvalidProducerEpoch,
    InvalidRecord as InvalidRecord,
    InvalidRecordSet as InvalidRecordSet,
    InvalidReplicaAssignment as InvalidReplicaAssignment,
    InvalidReplicationFactor as InvalidReplicationFactor,
    InvalidRequest as InvalidRequest,
    InvalidTimestamp as InvalidTimestamp,
    InvalidTopic as InvalidTopic,
    InvalidTxnState as InvalidTxnState,
    MessageTooLarge as MessageTooLarge,
    NonEmptyGroup as NonEmptyGroup,
    NotLeaderOrFollower as NotLeaderOrFollower,
    NotReadyError as NotReadyError,
    OffsetOutOfRange as OffsetOutOfRange,
    OutOfOrderSequence as OutOfOrderSequence,
    PluginError as PluginError,
    PolicyViolation as PolicyViolation,
    RecordError as RecordError,
    RecordListTooLarge as RecordListTooLarge,
    RequestTimedOut as RequestTimedOut,
    StorageError as StorageError,
    TopicAlreadyExists as TopicAlreadyExists,
    TopicAuthorizationFailed as TopicAuthorizationFailed,
    TopicDeletionDisabled as TopicDeletionDisabled,
    TransactionCoordinatorFenced as TransactionCoordinatorFenced,
    UnknownLeaderEpoch as UnknownLeaderEpoch,
    UnknownMemberId as UnknownMemberId,
    UnknownServerError as UnknownServerError,
    UnknownTopicId as UnknownTopicId,
    UnknownTopicOrPartition as UnknownTopicOrPartition,
    UnsupportedCompressionType as UnsupportedCompressionType,
    UnsupportedVersion as UnsupportedVersion,
)


class ChainError(UnknownServerError):
    """A record filter or produce validator has failed, or cannot be had: the message, which names it, goes to the
    client."""


class ThrottlingQuotaExceeded(BrokerError):
    """A client has changed more topics than its quota allows (KIP-599)."""

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class ConfigError(Exception):
    """A setting that stops the start: the message names the key, the value, its source and what is allowed."""


class StartError(Exception):
    """The process cannot start: a busy port, a directory in use. The message is the one line the person sees."""


class AddressTaken(StartError):
    """Another program listens there."""


class TakesTooLong(PluginError):
    """A call into a plugin is not over in time. The message says so, and where the call is: `... 10 s: it is at FILE,
    line N`."""
