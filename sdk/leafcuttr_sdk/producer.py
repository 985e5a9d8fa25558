"""A producer in process: records are sent without waiting, and written together.

`Broker.produce` is for a task that has one record and waits for it; `Broker.produce_batch` for one that has many. A
`Producer` is for a service whose many tasks have a record now and then, for any topic, and for one that goes on with
its work while records are written.
"""

from collections.abc import Generator
from typing import Any, Final, Protocol

from leafcuttr_sdk.records import Produced, Record

DEFAULT_MAX_BYTES: Final = 32 * 1024 * 1024
"""What a producer holds unless it is told otherwise: Kafka's `buffer.memory`."""
RECORD_BYTES: Final = 256
"""What each record counts for beside its key, its value, and the names and values of its headers: about the memory that
the objects of one take."""


class ProducerFullError(Exception):
    """The producer holds as many bytes as it may: the record was not taken. `await producer.room()`, and send it
    again."""


class Receipt(Protocol):
    """What becomes of one record. Several tasks may await it, at any time, also when the producer is closed.

    It need not be kept: the record is stored all the same. A failure is noted in the log if its receipt was dropped
    and neither awaited nor read: see `Producer`.
    """

    @property
    def done(self) -> bool:
        """Whether the record is stored, or refused."""
        ...

    def result(self) -> Produced:
        """Where the record went. Raises the BrokerError for which it was not stored, and trio.WouldBlock while it is
        not `done`."""
        ...

    def __await__(self) -> Generator[Any, Any, Produced]:
        """Wait until it is done, and return or raise as `result`. Cancelled: the record stays with the producer, and
        the receipt may be awaited again."""
        ...


class Producer(Protocol):
    """What `Broker.producer` returns; for all tasks of its loop.

    What is sent in one turn of the loop, or with a linger within that time, is written together: one batch for each
    partition, and one write for each log. While a write is under way, what is sent gathers for the next. The records of
    a partition are stored in the order in which they were sent, also where their topic is created first: those of
    other topics do not wait for that. They do wait for a write to a topic in sync mode, or with slow filters.

    Each record is refused by itself, as by `Broker.produce_batch`. Filters and validators see the principal of the task
    that has sent the record (`current_principal`).

    A failure that nobody reads, because the receipt was dropped, is a warning in the plugin's log: one line for each
    topic and kind of error, and not more than one a minute, with the number of records.
    """

    def send(self, topic: str, record: Record, *, partition: int | None = None) -> Receipt:
        """Take a record, and return at once. A topic that does not exist is created if `auto.create.topics.enable`
        allows it. Without a `partition` it goes where `Broker.produce` sends it. Without a time it gets that at which
        it is written.

        Raises ProducerFullError; TypeError for what is no record, trio.ClosedResourceError when the producer is closed.
        All other errors are the receipt's.
        """
        ...

    async def flush(self) -> None:
        """Have everything that was sent until now written, without waiting for the linger, and wait for it. It does not
        raise what records were refused for: their receipts do. Cancelled: the records stay with the producer."""
        ...

    async def room(self) -> None:
        """Wait until `send` takes a record, whatever its size. Another task may be faster: send in a loop. The linger
        is cut short. Raises trio.ClosedResourceError when the producer is closed."""
        ...

    @property
    def held_bytes(self) -> int:
        """The bytes of the records that were sent and are not done: of keys, values and headers, and `RECORD_BYTES` for
        each. A record is taken while they are less than `max_bytes`, so they may be one record more."""
        ...
