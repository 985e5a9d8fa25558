"""The records of one span of offsets, read by a task. It runs where executors are: without Spark's classes."""

from collections.abc import Iterator

from leafcuttr_sdk.batches import BatchError
from leafcuttr_sdk.blocking_peers import BlockingPeer, BlockingReader
from leafcuttr_sdk.errors import BrokerError, OffsetOutOfRange, PluginError
from leafcuttr_sdk.peers import PeerRead
from leafcuttr_spark.codec.decoding import Columns, Wanted, decode
from leafcuttr_spark.source.cluster import ClusterView
from leafcuttr_spark.source.losses import Report, Span, reporter
from leafcuttr_spark.source.options import SourceOptions

_AHEAD_BYTES = 16 << 20
"""What is fetched and not decoded yet, at most."""


class ReadError(PluginError):
    """Records that cannot be read."""


def read_span(peer: BlockingPeer, span: Span, options: SourceOptions) -> Iterator[Columns]:
    """Raises ReadError with one line, DataLossError, and BrokerError where the cluster is away."""
    ahead = max(_AHEAD_BYTES, options.fetch_bytes)
    with peer.reader(
        committed=options.committed, max_bytes=ahead, partition_bytes=options.fetch_bytes
    ) as reader:
        reader.assign({span.partition: span.first})
        yield from _Reading(peer, reader, span, options).columns()


class _Reading:
    def __init__(
        self, peer: BlockingPeer, reader: BlockingReader, span: Span, options: SourceOptions
    ) -> None:
        self._peer = peer
        self._reader = reader
        self._partition, self._at, self._end = span
        self._options = options
        self._report: Report = reporter(options.fail_on_data_loss)

    def columns(self) -> Iterator[Columns]:
        while self._at < self._end:
            reads = self._reader.read(self._options.poll_timeout_s)
            if not reads:
                raise ReadError(
                    f"{self._partition}: nothing came from offset {self._at} within"
                    f" {self._options.poll_timeout_s:g} s, and {self._end} is to be reached"
                    + (f": {trouble}" if (trouble := self._peer.trouble) else "")
                )
            for read in reads:
                yield from self._decoded(read)

    def _decoded(self, read: PeerRead) -> Iterator[Columns]:
        if read.data:
            try:
                yield from decode(read.data, self._wanted(), read.aborted)
            except BatchError as error:
                raise ReadError(
                    f"{self._partition}: a batch at or behind offset {self._at} is damaged: {error}"
                ) from None
        self._at = max(self._at, read.next_offset)
        if read.error is not None and self._at < self._end:
            self._go_on(read.error)

    def _wanted(self) -> Wanted:
        return Wanted(
            first=self._at,
            end=self._end,
            keys=self._options.needs_keys,
            values=self._options.needs_values,
            headers=self._options.needs_headers,
            check_crcs=self._options.check_crcs,
        )

    def _go_on(self, error: BrokerError) -> None:
        """Behind what is missing, if something is."""
        if not isinstance(error, OffsetOutOfRange):
            raise ReadError(
                f"{self._partition}: it cannot be read from offset {self._at} on: {error}"
            ) from None
        view = ClusterView(self._peer, committed=self._options.committed)
        begin = view.begins([self._partition]).get(self._partition)
        if begin is not None and self._at < begin:
            self._report(f"{self._partition} begins at offset {begin}: offsets from {self._at} on are gone")
            self._at = begin
        else:
            end = view.ends([self._partition]).get(self._partition, 0)
            self._report(f"{self._partition} ends at offset {end}: offsets up to {self._end} are gone")
            self._at = self._end
        if self._at < self._end:
            self._reader.assign({self._partition: self._at})
