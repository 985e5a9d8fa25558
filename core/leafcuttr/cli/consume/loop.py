"""The loop of `leafcuttr consume`: print what the reader yields, and store the offsets of what is printed."""

import sys
from typing import TYPE_CHECKING, Any

import click

from leafcuttr.cli.common.meter import Meter
from leafcuttr.cli.common.output import count
from leafcuttr.cli.consume.printing import Printer
from leafcuttr.cli.consume.reading import TopicReader
from leafcuttr_sdk.formats import FormatError

if TYPE_CHECKING:
    from leafcuttr.cli.consume.filtering import MessageFilter


class PrintLoop:
    """Prints what the reader yields, and stores its offsets to be committed once it is printed."""

    def __init__(
        self,
        reader: TopicReader,
        consumer: Any,
        printer: Printer,
        wanted: "MessageFilter | None",
        given: dict[str, Any],
        meter: Meter,
    ) -> None:
        self._reader = reader
        self._consumer = consumer
        self._printer = printer
        self._wanted = wanted
        self._given = given
        self._meter = meter
        self._printed = self._skipped = 0

    def run(self) -> int:
        """The exit status. Raises KafkaException, BrokenPipeError, KeyboardInterrupt."""
        for batch in self._reader.batches(self._limit):
            if batch:
                problem = self._print(batch)
                if problem is not None:
                    click.echo(f"leafcuttr: {problem}", err=True)
                    return 1
        if self._skipped:
            click.echo(f"leafcuttr: {count(self._skipped, 'record')} not of the format left out", err=True)
        return 0

    def _limit(self) -> int:
        most = self._given["most"]
        return sys.maxsize if most is None else int(most) - self._printed

    def _print(self, batch: list[Any]) -> str | None:
        """What is wrong with a record, after those before it have been printed."""
        lines: list[bytes] = []
        done: dict[int, Any] = {}
        problem = None
        for message in batch:
            try:
                if self._wanted is None or self._wanted(message):
                    lines.append(self._printer(message))
            except FormatError as error:
                if not self._given["skip_errors"]:
                    problem = f"{message.topic()}-{message.partition()} offset {message.offset()}: {error}"
                    break
                self._skipped += 1
            done[message.partition()] = message
        sys.stdout.buffer.write(b"".join(lines))
        sys.stdout.buffer.flush()
        self._printed += len(lines)
        self._meter.count(self._printed)
        if self._given["group"]:
            for message in done.values():
                self._consumer.store_offsets(message=message)
        return problem
