"""Error codes of the coordinators as the exceptions that plugins get."""

from collections.abc import Mapping
from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr_sdk import errors

_FAMILY: Final[Mapping[ErrorCode, type[BrokerError]]] = {
    each.code: each
    for each in (
        errors.CoordinatorLoadInProgress,
        errors.CoordinatorNotAvailable,
        errors.FencedInstanceId,
        errors.GroupIdNotFound,
        errors.GroupMaxSizeReached,
        errors.IllegalGeneration,
        errors.InconsistentGroupProtocol,
        errors.InvalidCommitOffsetSize,
        errors.InvalidGroupId,
        errors.InvalidRequest,
        errors.InvalidSessionTimeout,
        errors.InvalidTransactionTimeout,
        errors.NonEmptyGroup,
        errors.NotCoordinator,
        errors.OffsetMetadataTooLarge,
        errors.RebalanceInProgress,
        errors.UnknownMemberId,
        errors.UnknownTopicOrPartition,
    )
}


def error_of(code: ErrorCode, message: str = "") -> BrokerError:
    """The error with this code."""
    kind = _FAMILY.get(code)
    return errors.UnknownServerError(message or code.name) if kind is None else kind(message)
