"""What the commands that talk to a broker through librdkafka share: address and settings, clients, errors as one line.

They work against any Kafka. confluent-kafka is imported when the first client is made, not before. Exit status of
all of them: 0 done, 1 the broker refused or cannot be reached, 2 wrong usage.
"""

from collections.abc import Sequence
from typing import Any, Final, NoReturn

import click

from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.librdkafka.properties import for_librdkafka
from leafcuttr.cli.common.pairs import pairs

REACH_S: Final = 5.0
_PLAIN_S: Final = 2.0
_made: Final[dict[int, "_Made"]] = {}
"""Clients by their ids: they are objects of C, and keep nothing of ours."""


def client_settings(address: str, properties: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """Settings of a librdkafka client; the properties may have Java's names. Raises click.UsageError for one without
    `=`, or one that librdkafka cannot take."""
    try:
        given = for_librdkafka(pairs("-X", properties))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return {"bootstrap.servers": address, "log_level": 2, **more, **given}


def admin(address: str, properties: Sequence[str] = (), reach: float = REACH_S) -> Any:
    """A client that has reached the broker within `reach` seconds; ends the command with one line if it cannot."""
    from confluent_kafka.admin import AdminClient

    made = client(AdminClient, client_settings(address, properties))
    topics(made, address, reach)
    return made


class _Made:
    """Where a client connects to, which its properties may say, and the errors that it tells beside the answers to
    calls."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.address: Final[str] = settings["bootstrap.servers"]
        self.plaintext: Final[bool] = settings.get("security.protocol", "PLAINTEXT").upper() == "PLAINTEXT"
        self.errors: Final[list[Any]] = []
        self._next = settings.get("error_cb")

    def heard(self, error: Any) -> None:
        self.errors.append(error)
        if self._next is not None:
            self._next(error)


def client(kind: Any, settings: dict[str, Any]) -> Any:
    """Make a client of a class of confluent-kafka. Raises click.UsageError for a setting that it does not know."""
    from confluent_kafka import KafkaException

    about = _Made(settings)
    try:
        made = kind({**settings, "error_cb": about.heard})
    except KafkaException as error:
        raise click.UsageError(error.args[0].str()) from None
    _made[id(made)] = about
    return made


def topics(made: Any, address: str, reach: float = REACH_S) -> Any:
    """The topics by name, as the first request to a broker; ends the command with one line if none answers."""
    from confluent_kafka import KafkaException

    try:
        return made.list_topics(timeout=reach).topics
    except KafkaException as error:
        about = _made.get(id(made))
        if about is None:
            fail(error, address)
        if (why := _why_unreachable(made, about)) is not None:
            raise Failure(f"{about.address}: {why}") from None
        if about.plaintext:
            _ask_plainly(about.address)
        fail(error, about.address)


def _why_unreachable(made: Any, about: _Made) -> str | None:
    """What stands between a client and a broker that is there: a password, a certificate. None: nothing was heard."""
    from confluent_kafka import KafkaError

    made.poll(0)  # what it has to say is said in here
    for error in reversed(about.errors):
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            # `sasl_ssl://localhost:9092/bootstrap: why (after 5ms in state ..., 1 identical error(s) suppressed)`
            said: str = error.str()
            return said.partition(": ")[2].rpartition(" (after ")[0] or said
    return None


def _ask_plainly(address: str) -> None:
    """librdkafka does not tell a broker that ends a plaintext connection from one that is not there; our own client
    does. Raises Failure with what that meets."""
    from leafcuttr.cli.common.wire_client.connection import BrokerConnection
    from leafcuttr.client.errors import ClientSettingError
    from leafcuttr.client.properties import addresses
    from leafcuttr.wire.messages.metadata import MetadataRequest

    try:
        first = addresses("bootstrap.servers", address)[0]
    except ClientSettingError:  # librdkafka takes more forms of an address
        return
    with BrokerConnection(first.host, first.port, _PLAIN_S) as connection:
        connection.send(MetadataRequest(topics=[]))


def fail(error: Any, address: str) -> NoReturn:
    """End the command with one line for an error of the broker or of the connection."""
    raise failure_of(error, address)


def failure_of(error: Any, address: str) -> Failure:
    """That line."""
    from confluent_kafka import KafkaError, KafkaException

    cause = error.args[0] if isinstance(error, KafkaException) and error.args else error
    code = None
    if isinstance(cause, KafkaError):
        unreachable = (
            KafkaError._TRANSPORT,
            KafkaError._ALL_BROKERS_DOWN,
            KafkaError._TIMED_OUT,
            KafkaError._MSG_TIMED_OUT,
        )
        if cause.code() in unreachable:
            text = f"no broker answers at {address}"
        elif cause.code() > 0:
            # Kafka's own code: with Kafka's name, which librdkafka shortens for some.
            code = cause.code()
            text = reason(code, cause.str().removeprefix("Broker: "))
        else:
            text = f"{cause.str()} ({cause.name()})"
    elif isinstance(cause, TimeoutError):
        text = f"{address} does not answer"
    else:
        text = str(cause)
    return Failure(text, code)
