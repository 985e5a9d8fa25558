"""What goes wrong between this client and a broker. The text of each is one line, with the broker's address.

A broker that answers with an error code of Kafka's is none of these: the code is in the response, and `refusal` makes
the exception of the SDK of it.
"""

import functools
from typing import ClassVar

from leafcuttr.errors import BrokerError, ErrorCode, PluginError


class ClientError(Exception):
    """The family. `passes`: the same may succeed later without anybody changing a setting."""

    passes: ClassVar[bool] = True


class Unreachable(ClientError):
    """No connection: nothing listens there, the name is unknown, or there is no such broker."""


class ConnectionLost(ClientError):
    """The connection ended while the request was under way: it may have been carried out."""


class TimedOut(ClientError):
    """No answer in time: the request may have been carried out."""


class NotKafka(ClientError):
    """The peer sent something that is no response; `said` are its first bytes."""

    passes = False

    def __init__(self, message: str, said: bytes = b"") -> None:
        super().__init__(message)
        self.said = said


class UnreadableResponse(NotKafka):
    """A frame came that is no answer to the request."""


class TlsRefused(ClientError):
    """No TLS connection: our settings, the certificate of the broker, or ours."""

    passes = False


class AuthenticationRefused(ClientError):
    """The broker refuses our credentials or our mechanism, or has not proved that it knows the password."""

    passes = False


class ApiNotOffered(ClientError):
    """The broker does not have an API, or no version of it that we speak."""

    passes = False


class ClientSettingError(PluginError, ValueError):
    """A setting of a client cannot be used: the text names it, and says what is allowed. Never a password."""


class OtherRefusal(BrokerError):
    """A broker answered with a code for which the SDK has no class of its own."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # of this one object


def reason(code: int, text: str | None = None) -> str:
    """What an error code of Kafka's protocol says: the broker's own text if it sent one, and the code's name.

    It follows the name of the thing that failed and a colon.
    """
    try:
        name = ErrorCode(code).name
    except ValueError:
        return f"{text or 'refused'} (error {code})"
    return f"{(text or name.replace('_', ' ').lower()).rstrip('.')} ({name})"


def refusal(code: int, message: str | None = None) -> BrokerError:
    """The exception for an error code of Kafka's protocol, with the broker's own text or the name of the code."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return OtherRefusal(ErrorCode.UNKNOWN_SERVER_ERROR, reason(code, message))
    text = message or known.name.replace("_", " ").lower()
    kind = _classes().get(known)
    return OtherRefusal(known, text) if kind is None else kind(text)


@functools.cache
def _classes() -> dict[ErrorCode, type[BrokerError]]:
    """Of the classes with the same code the one nearest to the root: those below it say more than the code does."""
    found: dict[ErrorCode, type[BrokerError]] = {}
    level: list[type[BrokerError]] = [BrokerError]
    while level:
        for kind in level:
            if kind is not OtherRefusal and kind.__module__.startswith("leafcuttr_sdk"):
                found.setdefault(kind.code, kind)
        level = [below for kind in level for below in kind.__subclasses__()]
    return found
