"""An error as the answer to an HTTP request, as JSON; and which one stands for an error of the broker.

A body is `{"error_code": 404, "message": "There is no row 'a'."}`.
"""

from typing import Final

from leafcuttr_sdk.errors import AuthorizationFailed, BrokerError, ErrorCode


class ApiError(Exception):
    """An answer that is an error. `code` is a status of HTTP, or five digits of the service's own that begin with one:
    40401 is answered with 404. `headers` are added to the answer's."""

    def __init__(self, code: int, message: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.headers = headers

    @property
    def status(self) -> int:
        """Of HTTP."""
        return self.code if self.code < 1000 else self.code // 100

    @property
    def body(self) -> dict[str, object]:
        """What is sent as JSON."""
        return {"error_code": self.code, "message": str(self)}


# What may go away by itself: Kafka's clients try these again.
_RETRIABLE: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)


def code_of(error: BrokerError) -> int:
    """50002 or 50003: whether the same may succeed later."""
    return 50003 if error.code in _RETRIABLE else 50002


def describe(error: BrokerError) -> str:
    """Kafka's name of the error, and the broker's own words where it has some."""
    return f"{error.code.name}: {error.message}" if error.message else error.code.name


def of_broker(error: BrokerError) -> ApiError:
    """The answer where the broker has refused, with a code of `code_of`; 40301 where the client lacks a right."""
    if isinstance(error, AuthorizationFailed):
        return ApiError(40301, str(error) or error.code.name)
    return ApiError(code_of(error), describe(error))
