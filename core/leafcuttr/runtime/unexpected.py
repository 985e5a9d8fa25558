"""Unexpected errors, and those of a process that has run out of something, as errors for a client."""

import logging

from leafcuttr.errors import BrokerError, StorageError, UnknownServerError
from leafcuttr.runtime.complaints import Complaints
from leafcuttr_sdk.trouble import exhausted

logger = logging.getLogger(__name__)


def as_refusal(complain: Complaints, error: Exception, what: str) -> BrokerError:
    """What to answer because `what` has failed; the log says so. Where the process has run out of something, the same
    request may succeed later, and there is one line as long as that goes on."""
    reason = exhausted(error)
    if reason is None:
        logger.error("%s failed", what, exc_info=error)
        return UnknownServerError("the broker's log says what happened")
    complain(reason, "%s failed: %s", what, reason)
    return StorageError(reason)
