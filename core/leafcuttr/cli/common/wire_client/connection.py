"""One connection to one broker, as commands use it: every failure is the one line that ends the command.

Plaintext only. Bytes are the business of `channel`, the choice of a broker that of `cluster`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.wire_client.channel import (
    MAX_FRAME,
    Channel,
    NotKafkaError,
    NotOfferedError,
    UnreadableError,
    api_of,
    at,
)
from leafcuttr.client.protocol import VersionRanges
from leafcuttr.wire.errors import WireError

CONNECT_S: Final = 5.0
_TLS_ALERT: Final = b"\x15\x03"  # what Java's TLS answers to plaintext (RFC 8446, 5.1)


class NotOffered(Failure):
    """The broker does not have this API, or no version of it that we speak."""


class BrokerConnection:
    """A connection whose versions are negotiated; `about` is the broker's answer to that.

    Raises Failure from every method: nothing listens, no answer within `timeout` seconds, not Kafka's protocol.
    """

    def __init__(self, host: str, port: int, timeout: float) -> None:
        self.name = at(host, port)
        try:
            self.channel = Channel((host, port), timeout, connect_timeout=min(timeout, CONNECT_S))
        except (OSError, UnicodeError):
            raise Failure(f"no broker answers at {self.name}") from None
        try:
            with self._failures("ApiVersions"):
                self.about = self.channel.greet()
            if self.about.error_code:
                raise Failure(f"{self.name} refuses ApiVersions: {reason(self.about.error_code)}")
        except BaseException:
            self.channel.close()
            raise

    def __enter__(self) -> "BrokerConnection":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.channel.close()

    @property
    def versions(self) -> VersionRanges:
        """By API key the lowest and the highest version that the broker offers."""
        return self.channel.versions

    def send(self, request: Any, *, at_least: int = 0) -> Any:
        """The answer to a request, in the highest version that both sides speak.

        `at_least` is the lowest version that can carry the request. Raises NotOffered.
        """
        with self._failures(api_of(request).name):
            return self.channel.send(request, at_least=at_least)

    @contextmanager
    def _failures(self, api: str) -> Iterator[None]:
        try:
            yield
        except NotOfferedError as error:
            raise NotOffered(f"the broker at {self.name} {error}") from None
        except UnreadableError as error:
            raise Failure(f"{self.name}: its answer to {api} cannot be read: {error}") from None
        except NotKafkaError as error:
            raise Failure(self._not_kafka(error.said)) from None
        except TimeoutError:
            raise Failure(
                f"{self.name} does not answer {api} within {self.channel.timeout:g} seconds"
            ) from None
        except OSError:
            raise Failure(self._closed()) from None
        except WireError as error:
            raise Failure(str(error)) from None

    def _not_kafka(self, said: bytes) -> str:
        if said.startswith(_TLS_ALERT):
            return f"{self.name} speaks TLS; this command speaks plaintext only for now"
        if self.versions:
            size = int.from_bytes(said[:4], "big", signed=True)
            return f"{self.name} announces an answer of {size} bytes; at most {MAX_FRAME} are read"
        return f"{self.name} does not speak Kafka's protocol"

    def _closed(self) -> str:
        if self.versions:
            return (
                f"{self.name} closed the connection; if its listener wants SASL: this command speaks "
                "plaintext without authentication only, for now"
            )
        return (
            f"{self.name} closed the connection at once: it wants TLS or is no Kafka; this command speaks "
            "plaintext only for now"
        )
