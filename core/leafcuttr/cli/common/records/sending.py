"""Records on their way to a broker, for `produce`: back-pressure, the result of each, transactions.

The client's queue is bounded; when it is full, `send` waits, so the input is read no faster than the broker takes it.
"""

import contextlib
import time
from functools import partial
from typing import Any, Final

from leafcuttr.cli.common.failures import reason
from leafcuttr.cli.common.records.json_lines import OutRecord
from leafcuttr.cli.common.target import TIMEOUT_S

LONGEST_BYTES: Final = 32 << 20
"""Of one record, unless the user sets message.max.bytes: the broker refuses what is too long for a topic."""
QUEUE_BYTES: Final = 64 << 20
TOPIC_MADE_MS: Final = 10_000
"""How long the creation of a topic by its first record may take; after that the topic counts as missing."""
_POLL_EVERY: Final = 64
_TRANSACTION_TIMEOUT_S: Final = 60.0


class FailedError(Exception):
    """A record was not acknowledged, or the transaction failed: one line that says what and why."""


class Sender:
    """One producer, one topic. With `transactional` everything is in transactions of up to `transaction_size`."""

    def __init__(
        self, producer: Any, topic: str, *, transactional: bool = False, transaction_size: int | None = None
    ) -> None:
        self.acknowledged = self.sent = self.sent_bytes = self.committed = self.transactions = 0
        self._producer = producer
        self._topic = topic
        self._transactional = transactional
        self._transaction_size = transaction_size
        self._open = 0  # records in the transaction
        self._failure: tuple[str, Any] | None = None

    def begin(self) -> None:
        """Raises FailedError when no transaction can be begun."""
        if self._transactional:
            self._in_transaction("begin", self._producer.init_transactions, TIMEOUT_S * 2)
            self._producer.begin_transaction()

    def send(self, record: OutRecord, source: str, number: int) -> None:
        """Queue it; waits while the queue is full. Raises FailedError once any record has failed.

        `source` and `number` say in messages which record it is.
        """
        from confluent_kafka import KafkaException

        value, key, headers, partition, timestamp = record
        on_delivery = partial(self._delivered, source, number)
        while True:
            try:
                # To the client 0 means the current time, and -1 that its partitioner chooses.
                self._producer.produce(
                    self._topic,
                    value,
                    key,
                    partition=-1 if partition is None else partition,
                    on_delivery=on_delivery,
                    timestamp=timestamp or 0,
                    headers=headers or None,
                )
                break
            except BufferError:
                self._producer.poll(0.1)
                self._check()
            except KafkaException as error:
                self._failure = self._failure or (f"{source} {number}", error.args[0])
                self._check()
        self.sent += 1
        self.sent_bytes += len(value or b"") + len(key or b"")
        self._open += 1
        if self.sent % _POLL_EVERY == 0:
            self.idle()
        if self._transactional and self._open == self._transaction_size:
            self._commit()
            self._producer.begin_transaction()

    def idle(self) -> None:
        """Handle what the broker has acknowledged. Raises FailedError once any record has failed."""
        self._producer.poll(0)
        self._check()

    def finish(self) -> None:
        """Wait until every record is acknowledged, and commit. Raises FailedError."""
        if self._transactional:
            self._commit()
            return
        while self._producer.flush(0.5):
            self._check()
        self._check()

    def give_up(self) -> None:
        """After a failure or Ctrl-C: abort the transaction, or let what is under way end, but not for long."""
        from confluent_kafka import KafkaException

        if self._transactional:
            with contextlib.suppress(KafkaException):
                self._producer.purge()
                self._producer.abort_transaction(TIMEOUT_S)
            return
        until = time.monotonic() + TIMEOUT_S
        while self._producer.flush(0.2) and time.monotonic() < until:
            pass

    def _delivered(self, source: str, number: int, error: Any, _: Any) -> None:
        if error is None:
            self.acknowledged += 1
        elif self._failure is None:
            self._failure = (f"{source} {number}", error)

    def _check(self) -> None:
        if self._failure is not None:
            where, error = self._failure
            raise FailedError(f"{where}: {self._because(error)}")

    def _because(self, error: Any) -> str:
        from confluent_kafka import KafkaError

        if error.code() in (KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
            return "the broker does not acknowledge it in time"
        if error.code() in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART):
            return f"there is no topic {self._topic}, and the broker makes none"
        if error.code() == KafkaError._UNKNOWN_PARTITION:
            return f"{self._topic} has no such partition"
        if error.code() > 0:
            return reason(error.code(), error.str().removeprefix("Broker: "))
        return f"{error.str()} ({error.name()})"

    def _commit(self) -> None:
        while self._producer.flush(0.5):
            self._check()
        self._check()
        self._in_transaction("commit", self._producer.commit_transaction, _TRANSACTION_TIMEOUT_S)
        self.transactions += 1
        self.committed += self._open
        self._open = 0

    def _in_transaction(self, what: str, call: Any, timeout_s: float) -> None:
        from confluent_kafka import KafkaException

        try:
            call(timeout_s)
        except KafkaException as error:
            raise FailedError(
                f"cannot {what} the transaction: {error.args[0].str()} ({error.args[0].name()})"
            ) from None
