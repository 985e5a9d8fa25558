"""One connection to one broker, as commands use it: every failure is the one line that ends the command.

Bytes, TLS and authentication are the business of `leafcuttr.client`, the choice of a broker that of `cluster`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

from leafcuttr.cli.common.client_properties import CLIENT_ID
from leafcuttr.cli.common.failures import Failure
from leafcuttr.client.errors import ApiNotOffered, ClientError
from leafcuttr.client.protocol import VersionRanges
from leafcuttr.client.settings import ClientSettings, HostPort
from leafcuttr.client.synchronous import BlockingConnection
from leafcuttr.wire.errors import WireError

CONNECT_S: Final = 5.0


class NotOffered(Failure):
    """The broker does not have this API, or no version of it that we speak."""


class BrokerConnection:
    """A connection whose versions are negotiated; `about` is the broker's answer to that.

    Raises Failure from every method: nothing listens, no answer within `timeout` seconds, not Kafka's protocol, no
    authentication. Without `settings` it is plaintext.
    """

    def __init__(self, host: str, port: int, timeout: float, settings: ClientSettings | None = None) -> None:
        address = HostPort(host, port)
        self.name = str(address)
        with _failures():
            self.channel = BlockingConnection(
                address,
                settings or ClientSettings(bootstrap=(address,), client_id=CLIENT_ID),
                timeout_s=timeout,
                connect_timeout_s=min(timeout, CONNECT_S),
            )
        self.about = self.channel.about

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
        with _failures():
            return self.channel.request(request, at_least=at_least)


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except ApiNotOffered as error:
        raise NotOffered(str(error)) from None
    except (ClientError, WireError) as error:
        raise Failure(str(error)) from None
