"""The part of the check of a peer that writes: appenders and transactions."""

from collections.abc import Sequence
from typing import Final

import trio

from leafcuttr_sdk.batches.header import HEADER, TRANSACTIONAL, BatchHeader, seal
from leafcuttr_sdk.batches.reader import Batch
from leafcuttr_sdk.broker import LATEST
from leafcuttr_sdk.errors import (
    BrokerError,
    CorruptMessage,
    InvalidProducerEpoch,
    MessageTooLarge,
    ProducerFenced,
    TransactionAborted,
)
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.peers import PeerAppender
from leafcuttr_sdk.records import Appended, NewBatch, Record
from leafcuttr_sdk.testing.peer_trial import PeerTrial, batch_of, new, stored
from leafcuttr_sdk.transactions import TransactionalProducer
from leafcuttr_sdk.types import TopicPartition

_CALLS: Final = 30


class WritingTrial:
    """Its parts; each has topics of its own."""

    def __init__(self, trial: PeerTrial) -> None:
        self._trial = trial
        self._peer = trial.peer

    async def order(self) -> None:
        trial = self._trial
        first, second = await trial.topic("order", 2)
        async with self._peer.appender() as appender:
            answers = await appender.append([new(first, b"a", b"b"), new(second, b"x"), new(first, b"c")])
            trial.same("the offsets of the batches", _offsets(answers), [(0, 1), (0, 0), (2, 2)])
            trial.same("the answer to no batches", await appender.append([]), [])
            called: list[bytes] = []

            async def call(number: int) -> None:
                called.append(b"%d" % number)
                trial.all_appended(await appender.append([new(first, b"%d" % number)]))

            async with trio.open_nursery() as nursery:
                for number in range(_CALLS):
                    nursery.start_soon(call, number)
        wanted = list(enumerate([b"a", b"b", b"c", *called]))
        trial.same("what is read", await trial.records(first, len(wanted)), wanted)
        within = await trial.records(first, len(wanted) - 1, 1)
        trial.same("what is read from within a batch", within, wanted[1:])
        trial.same("the other partition", await trial.records(second, 1), [(0, b"x")])

    async def producer(self) -> None:
        trial = self._trial
        (partition,) = await trial.topic("producer")
        foreign = batch_of(b"a")
        header = BatchHeader._make(HEADER.unpack_from(foreign))
        seal(
            foreign,
            header._replace(
                base_offset=17,
                leader_epoch=3,
                attributes=TRANSACTIONAL,
                producer_id=(1 << 62) + 1,
                producer_epoch=7,
                base_sequence=5,
            ),
        )
        async with self._peer.appender() as appender:
            for batch in (bytes(foreign), memoryview(bytes(foreign)), foreign):
                trial.all_appended(await appender.append([NewBatch(partition, batch)]))
        headers = [each.header for each in await self._stored(partition, 3)]
        trial.same("the base offsets", [each.base_offset for each in headers], [0, 1, 2])
        if any(each.producer_id == (1 << 62) + 1 for each in headers):
            trial.wrong("a batch still has the producer that it came with")
        if any(each.is_transactional for each in headers):
            trial.wrong("a batch that came as one of a transaction still is")

    async def refusals(self) -> None:
        trial = self._trial
        (partition,) = await trial.topic("refusals", configs={"max.message.bytes": "1000"})
        damaged, large = _damaged(), batch_of(b"x" * 5000)
        wanted: list[bytes] = []
        async with self._peer.appender() as appender:
            for bad, kind in ((damaged, CorruptMessage), (large, MessageTooLarge)):
                wanted.append(b"before")
                answers = await appender.append(
                    [new(partition, b"before"), NewBatch(partition, bad), new(partition, b"behind")]
                )
                trial.all_appended(answers[:1])
                if not isinstance(answers[1], kind):
                    trial.wrong(f"a bad batch is answered with {answers[1]!r}, not {kind.__name__}")
                if not isinstance(answers[2], BrokerError):
                    trial.wrong("a batch was appended behind one of its call that was refused")
            if await self._behind_an_earlier_call(appender, partition, large):
                wanted.append(b"second")
            trial.all_appended(await appender.append([new(partition, b"next")]))
            wanted.append(b"next")
        trial.same("what is read", _values(await trial.records(partition, len(wanted))), wanted)

    async def _behind_an_earlier_call(
        self, appender: PeerAppender, partition: TopicPartition, large: bytearray
    ) -> bool:
        """A call with a batch that is refused, and one that is made when that has begun: whether the second was
        appended."""
        begun, ended = trio.Event(), trio.Event()
        answers: list[Appended | BrokerError] = []

        async def first() -> None:
            begun.set()
            await appender.append([NewBatch(partition, large)])
            ended.set()

        async def second() -> None:
            await begun.wait()
            behind = not ended.is_set()
            answers.extend(await appender.append([new(partition, b"second")]))
            if behind and isinstance(answers[0], Appended):
                self._trial.wrong("a batch was appended behind one that failed of an earlier call under way")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            nursery.start_soon(second)
        return isinstance(answers[0], Appended)

    async def cancelled_append(self) -> None:
        trial = self._trial
        (partition,) = await trial.topic("cancelled")
        async with trial.filled(partition, b"first") as appender:
            for number in range(10):
                with trio.move_on_after(0.0005 * number):
                    await appender.append([new(partition, b"perhaps %d" % number)])
            trial.all_appended(await appender.append([new(partition, b"last")]))
        end = (await self._peer.offsets({partition: LATEST}))[partition]
        values = [each.value for each in await trial.records(partition, end)]
        perhaps = [each for each in values if each.startswith(b"perhaps")]
        trial.same("what was not cancelled", [values[0], values[-1]], [b"first", b"last"])
        trial.same("what may have been appended", perhaps, sorted(set(perhaps)))

    # Transactions

    async def transactions(self) -> None:
        trial, peer = self._trial, self._peer
        if not await peer.has_transactions():
            return
        first, second = await trial.topic("transactions", 2)
        group = trial.name("group")
        async with (
            peer.transaction(trial.name("id")) as producer,
            peer.reader() as reader,
            trial.filled(first, b"plain"),
        ):
            async with producer.begin() as transaction:
                appended = await transaction.append([new(first, b"a", b"b"), new(second, b"x")])
                trial.same("the offsets of the batches", _offsets(appended), [(1, 2), (0, 0)])
                produced = await transaction.produce_batch(
                    first.topic,
                    [Record(b"c", b"key", (("name", b"text"),), 1_700_000_000_000)],
                    partitions=[0],
                )
                trial.same("the offset of a record", [each.offset for each in produced], [3])
                await transaction.commit_offsets(group, {first: CommittedOffset(1, "in")})
                reader.assign({second: 0})
                await trial.nothing("a reader of committed records of an open transaction", reader)
                trial.same(
                    "what others see of it",
                    [each.value for each in await trial.records(second, 1, committed=False)],
                    [b"x"],
                )
                trial.same(
                    "an offset that is not committed yet", (await peer.committed(group)).get(first), None
                )
            trial.same(
                "what was committed", _values(await trial.records(first, 4)), [b"plain", b"a", b"b", b"c"]
            )

            async def offset() -> object:
                return (await peer.committed(group)).get(first)

            # Markers are written behind the answer that the transaction has ended.
            await trial.becomes("the offset", offset, CommittedOffset(1, "in"))
            await self._aborted(producer, first, group)

    async def _aborted(self, producer: TransactionalProducer, partition: TopicPartition, group: str) -> None:
        """Four that are aborted, each in another way, and one behind them that is not."""
        trial, peer = self._trial, self._peer
        async with producer.begin() as transaction:
            await transaction.append([new(partition, b"aborted")])
            await transaction.commit_offsets(group, {partition: CommittedOffset(9)})
            await transaction.abort()
        with trial.raises("a block that raises", ZeroDivisionError):
            async with producer.begin() as transaction:
                await transaction.append([new(partition, b"raised")])
                _fail()
        with trial.raises("the end of a block after a call that failed", TransactionAborted):
            async with producer.begin() as transaction:
                await transaction.append([new(partition, b"failed")])
                with trial.raises("a damaged batch", CorruptMessage):
                    await transaction.append([NewBatch(partition, _damaged())])
        with trio.move_on_after(0.2):
            async with producer.begin() as transaction:
                await transaction.append([new(partition, b"cancelled")])
                await trio.sleep_forever()
        async with producer.begin() as transaction:
            await transaction.append([new(partition, b"last")])
        values = _values(await trial.records(partition, 5))
        trial.same("what readers of committed records see", values, [b"plain", b"a", b"b", b"c", b"last"])
        trial.same(
            "an offset of an aborted transaction",
            (await peer.committed(group)).get(partition),
            CommittedOffset(1, "in"),
        )
        everything = _values(await trial.records(partition, 9, committed=False))
        for value in (b"aborted", b"raised", b"failed", b"cancelled"):
            if value not in everything:
                trial.wrong(f"{value!r} was not written before its transaction was aborted")

    async def fencing(self) -> None:
        trial, peer = self._trial, self._peer
        if not await peer.has_transactions():
            return
        (partition,) = await trial.topic("fencing")
        name = trial.name("id")
        fenced = (ProducerFenced, InvalidProducerEpoch)
        async with peer.transaction(name) as first:
            with trial.raises("the end of a fenced block", *fenced, TransactionAborted):
                async with first.begin() as transaction:
                    await transaction.append([new(partition, b"old")])
                    async with trial.second.transaction(name) as second, second.begin() as other:
                        await other.append([new(partition, b"new")])
                    with trial.raises("a fenced producer", *fenced):
                        await transaction.append([new(partition, b"late")])
        trial.same("what is read", _values(await trial.records(partition, 1)), [b"new"])

    async def _stored(self, partition: TopicPartition, count: int) -> list[Batch]:
        batches: list[Batch] = []
        async with self._peer.reader() as reader:
            reader.assign({partition: 0})
            while len(batches) < count:
                for read in await reader.read():
                    batches += stored(read)
        return batches


def _fail() -> None:
    raise ZeroDivisionError


def _damaged() -> bytearray:
    batch = batch_of(b"damaged")
    batch[-1] ^= 1
    return batch


def _offsets(answers: "Sequence[Appended | BrokerError]") -> list[object]:
    return [(each.base_offset, each.last_offset) if isinstance(each, Appended) else each for each in answers]


def _values(seen: Sequence[tuple[int, bytes]]) -> list[bytes]:
    return [value for _, value in seen]
