"""A `TransactionalProducer` over the network (KIP-98): what Kafka's transactional producer does, with whole batches.

Two versions of the protocol are spoken. By the older one partitions and groups are added to a transaction before the
first write, and the producer keeps its epoch; after an abort it takes a new one, so that no late batch of the aborted
transaction gets into the next (KIP-360). By the newer one (KIP-890, `transaction.version` 2, Kafka 4) a write adds
its partition by itself, and every end answers with the epoch of the next transaction.

What becomes of a commit whose answer was lost is found out by sending it again, for `delivery.timeout.ms`: the
coordinator knows it. Once that is over, RequestTimedOut says so, and the next `begin` aborts it if it has not happened.

Longer than other modules because what fails or is cancelled between two of these steps has to be seen beside them.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Set
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final

import trio

from leafcuttr.client.calls import Calls
from leafcuttr.client.coordinators import CoordinatorKind
from leafcuttr.client.enlisting import TransactionVersions, add_group, add_partitions, commit_with_it
from leafcuttr.client.producing.records import build, choose
from leafcuttr.client.producing.sender import BatchSender
from leafcuttr.client.producing.stamp import ProducerIdentity
from leafcuttr.client.shared.written import described
from leafcuttr.client.topics import describe_topics
from leafcuttr.client.transactional import (
    NOT_OURS,
    PATIENCE_S,
    TransactionalProducerBase,
    TransactionBase,
)
from leafcuttr.errors import BrokerError, ErrorCode, UnknownTopicOrPartition
from leafcuttr.runtime.block_nursery import open_block_nursery
from leafcuttr.version import __version__
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.end_txn import EndTxnRequest
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest
from leafcuttr_sdk.batches import Sticky
from leafcuttr_sdk.consumer import Consumer
from leafcuttr_sdk.errors import TransactionAborted
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.records import Appended, NewBatch, Produced, Record
from leafcuttr_sdk.types import Clock, TopicPartition

_BATCH_BYTES: Final = 1_000_000
"""Below the default of `max.message.bytes`."""
_KIND: Final = CoordinatorKind.TRANSACTION
_ABORTED: Final = frozenset({"PrepareEpochFence", "PrepareAbort", "CompleteAbort"})
"""The states of a transactional id whose transaction was aborted, or is being."""


@asynccontextmanager
async def open_producer(
    calls: Calls, clock: Clock, logger: logging.Logger, transactional_id: str, timeout_ms: int
) -> AsyncIterator["RemoteProducer"]:
    """See `leafcuttr_sdk.peers.Peer.transaction`."""
    with ExitStack() as behind:
        async with open_block_nursery() as nursery:
            producer = RemoteProducer(calls, clock, logger, nursery, transactional_id, timeout_ms)
            behind.callback(producer.sender.close)
            try:
                await producer.open()
                yield producer
            finally:
                await producer.close()


class RemoteProducer(TransactionalProducerBase["RemoteTransaction"]):
    """See `leafcuttr_sdk.TransactionalProducer`. `identity` is the producer id and epoch of the transaction that is
    open, or of the next one."""

    def __init__(
        self,
        calls: Calls,
        clock: Clock,
        logger: logging.Logger,
        nursery: trio.Nursery,
        transactional_id: str,
        timeout_ms: int,
    ) -> None:
        super().__init__(transactional_id, timeout_ms, logger)
        self.calls = calls
        self.clock = clock
        self.identity = ProducerIdentity()
        self.versions = TransactionVersions(0)
        self.sender = BatchSender(calls, nursery, transactional_id=transactional_id)
        self.sticky: dict[str, Sticky] = {}
        self._nursery = nursery
        self._fenced = False
        self._takes_epoch = False  # before the next transaction

    async def open(self) -> None:
        """Raises InvalidRequest, InvalidTransactionTimeout, and what keeps the coordinator away."""
        self._check_id()
        await self._take_epoch(None)
        self._nursery.start_soon(self.sender.run)

    async def _make_ready(self) -> None:
        if self._fenced:
            raise self.fenced()
        if self._takes_epoch:
            await self._take_epoch(self.identity)

    def _transaction(self) -> "RemoteTransaction":
        self.sender.resume()
        return RemoteTransaction(self)

    async def coordinator(
        self, request: Any, code_of: Any, *, at_most: int | None = None, timeout_s: float | None = None
    ) -> Any:
        """The coordinator's answer. Raises BrokerError."""
        return await self.calls.coordinator(
            _KIND, self.transactional_id, request, code_of, at_most=at_most, timeout_s=timeout_s
        )

    async def _take_epoch(self, known: ProducerIdentity | None) -> None:
        """InitProducerId. With the id and epoch that we have it fences nobody (KIP-360)."""
        self._takes_epoch = True
        await self._learn_versions()
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=-1 if known is None else known.producer_id,
            producer_epoch=-1 if known is None else known.epoch,
        )
        try:
            answer = await self.coordinator(request, _code, timeout_s=self.calls.settings.delivery_timeout_s)
        except BrokerError as error:
            if known is not None and error.code in NOT_OURS:
                self._fenced = True
                raise self.fenced() from None
            if error.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                raise type(error)(
                    f"A timeout of {self.timeout_ms} ms is not from 1 ms to the cluster's transaction.max.timeout.ms."
                ) from None
            raise
        self.go_on(answer.producer_id, answer.producer_epoch)
        self._takes_epoch = False

    async def _learn_versions(self) -> None:
        """Which version of transactions the cluster has (`transaction.version`)."""
        answer = await self.coordinator(
            ApiVersionsRequest(client_software_name="leafcuttr", client_software_version=__version__), _code
        )
        offered = {each.api_key: each.max_version for each in answer.api_keys}
        level = next(
            (
                each.max_version_level
                for each in answer.finalized_features
                if each.name == "transaction.version"
            ),
            0,
        )
        self.versions = TransactionVersions(level if offered.get(ApiKey.END_TXN, 0) >= 5 else 0)
        self.sender.names_version = self.versions.produce

    def go_on(self, producer_id: int, epoch: int) -> None:
        """The next batches are of this producer and epoch."""
        identity = ProducerIdentity(producer_id, epoch)
        if producer_id >= 0 and identity != self.identity:
            self.identity = identity
            self.sender.begin_anew()

    async def end(self, *, commit: bool, timeout_s: float) -> None:
        """EndTxn. Raises BrokerError."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            committed=commit,
        )
        self._takes_epoch = True
        answer = await self.coordinator(request, _code, at_most=self.versions.end, timeout_s=timeout_s)
        if self.versions.adds_by_itself:
            self.go_on(answer.producer_id, answer.producer_epoch)
        # By the older version a late batch of what was aborted would get into the next transaction.
        self._takes_epoch = not commit and not self.versions.adds_by_itself

    async def explained(self, error: BrokerError, since: float) -> BrokerError:
        """What an error means that says that the transaction is ours no more; it began `since` by trio's clock."""
        if error.code not in NOT_OURS:
            return error
        self._takes_epoch = True
        overdue = trio.current_time() - since >= self.timeout_ms / 1000
        state = await described(self.calls, self.transactional_id)
        now = None if state is None else ProducerIdentity(state.producer_id, state.producer_epoch)
        if now == self.identity:
            return error  # nobody has taken it: the transaction can be aborted
        if overdue and (state is None or self._is_abort_of_ours(state)):
            if now is not None:
                self.go_on(*now)
            return self.timed_out()
        self._fenced = True
        return self.fenced()

    def _is_abort_of_ours(self, state: Any) -> bool:
        """Whether all that may have happened to the id since is that our transaction was aborted by its timeout: that
        raises the epoch by one, by the newer version once more. Another producer that takes the id raises it again; it
        leaves no transaction that was aborted where nothing was added to ours."""
        raised = state.producer_epoch - self.identity.epoch
        return (
            state.transaction_state in _ABORTED
            and state.producer_id == self.identity.producer_id
            and raised <= (2 if self.versions.adds_by_itself else 1)
        )


class RemoteTransaction(TransactionBase):
    """See `leafcuttr_sdk.OpenTransaction`."""

    def __init__(self, producer: RemoteProducer) -> None:
        super().__init__(producer.transactional_id, producer.logger)
        self._producer = producer
        self._began_at = trio.current_time()
        self._added: set[TopicPartition] = set()
        self._groups: set[str] = set()
        self._under_way = 0
        self._settled = trio.Event()
        self._explaining = trio.Lock()
        self._loss: BrokerError | None = None

    # --- what callers use -----------------------------------------------------------------------------------

    async def produce_batch(
        self, topic: str, records: Sequence[Record], *, partitions: Sequence[int | None] | None = None
    ) -> list[Produced]:
        async with self._step():
            producer = self._producer
            async with self._turn():
                found = (await describe_topics(producer.calls, [topic])).get(topic)
                if found is None:
                    raise UnknownTopicOrPartition(f"there is no topic {topic}")
                sticky = producer.sticky.setdefault(topic, Sticky())
                chosen = choose(topic, records, partitions, found.partitions, sticky)
                built = build(records, chosen, now_ms=producer.clock.now_ms(), max_bytes=_BATCH_BYTES)
                batches = [NewBatch(TopicPartition(topic, each.partition), each.batch) for each in built]
                answers = await self._begin(batches)
            produced: dict[int, Produced] = {}
            for each, appended in zip(built, await answers(), strict=True):
                stored = appended.log_append_time
                for index, place in enumerate(each.places):
                    offset = appended.base_offset + index if appended.base_offset >= 0 else -1
                    time = stored if stored >= 0 else each.timestamps[index]
                    produced[place] = Produced(topic, each.partition, offset, time)
            return [produced[place] for place in range(len(records))]

    async def append(self, batches: Sequence[NewBatch]) -> list[Appended]:
        async with self._step():
            async with self._turn():
                answers = await self._begin(batches)
            return await answers()

    async def commit_offsets(
        self, group: str | Consumer, offsets: Mapping[TopicPartition, CommittedOffset] | None = None
    ) -> None:
        async with self._step(), self._turn():
            if not isinstance(group, str):
                raise TypeError(
                    "A consumer of this broker is no member of a group of another cluster: name the group."
                )
            if offsets is None:
                raise ValueError(f"The offsets of group {group!r} are to be named.")
            if offsets:
                await self._commit_offsets(group, offsets)

    # --- how ------------------------------------------------------------------------------------------------

    async def _end_with_abort(self) -> None:
        await self._producer.sender.stop(TransactionAborted("The transaction is aborted."))
        if self._begun:
            await self._producer.end(commit=False, timeout_s=PATIENCE_S)

    async def _end_with_commit(self) -> None:
        await self._all_settled()
        self._check()
        producer, failure = self._producer, None
        async with trio.open_nursery() as nursery:
            decision = trio.CancelScope(shield=True)
            nursery.start_soon(_hasten, decision)
            with decision:
                try:
                    await producer.end(commit=True, timeout_s=producer.calls.settings.delivery_timeout_s)
                except BrokerError as error:
                    failure = error
            # Also if it was cut short by a cancellation, which goes on from here: nobody knows then what has become of
            # it, and an abort might be one of the next transaction.
            self._over = failure is None
            nursery.cancel_scope.cancel()
        if failure is None:
            return
        self._failed, self._failure = True, failure
        self._over = failure.code is ErrorCode.REQUEST_TIMED_OUT
        explained = await producer.explained(failure, self._began_at)
        self._over = self._over or explained is not failure
        raise explained from failure.__cause__

    @asynccontextmanager
    async def _step(self) -> AsyncIterator[None]:
        """One call. Whatever it raises, nothing can be committed after it."""
        self._check()
        try:
            yield
        except BrokerError as error:
            known, self._failed = self._failed, True
            explained = await self._explained(error)
            if not known:
                self._failure = explained
            raise explained from error.__cause__
        except Exception as error:
            known, self._failed = self._failed, True
            if not known:
                self._failure = error
            raise
        except BaseException:
            self._failed = True
            raise

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Until its batches have their places, a call lets no other begin: they are written in the order of the calls,
        and acknowledged together."""
        async with self._one_at_a_time:
            self._check()
            yield

    async def _begin(self, batches: Sequence[NewBatch]) -> Callable[[], Awaitable[list[Appended]]]:
        """What waits for the answers."""
        await self._add({each.partition for each in batches} - self._added)
        self._begun = self._begun or bool(batches)
        answers = self._producer.sender.begin(batches, self._producer.identity)
        self._under_way += 1
        return partial(self._answered, answers)

    async def _answered(
        self, answers: Callable[[], Awaitable[list[Appended | BrokerError]]]
    ) -> list[Appended]:
        try:
            return _appended(await answers())
        finally:
            self._under_way -= 1
            event, self._settled = self._settled, trio.Event()
            event.set()

    async def _all_settled(self) -> None:
        """No batches are under way."""
        while self._under_way:
            await self._settled.wait()

    async def _explained(self, error: BrokerError) -> BrokerError:
        """See `RemoteProducer.explained`; of calls that fail together all get the same explanation."""
        if error.code not in NOT_OURS:
            return error
        async with self._explaining:
            if self._loss is None:
                # Another epoch, which this may find, has no places for batches that are under way.
                await self._all_settled()
                self._loss = await self._producer.explained(error, self._began_at)
            return self._loss

    async def _add(self, partitions: Set[TopicPartition]) -> None:
        producer = self._producer
        if partitions and not producer.versions.adds_by_itself:
            self._begun = True
            await add_partitions(producer.calls, producer.transactional_id, producer.identity, partitions)
        self._added |= partitions

    async def _commit_offsets(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        producer = self._producer
        self._begun = True
        if not producer.versions.adds_by_itself and group not in self._groups:
            await add_group(producer.calls, producer.transactional_id, producer.identity, group)
            self._groups.add(group)
        await commit_with_it(
            producer.calls, producer.transactional_id, producer.identity, producer.versions, group, offsets
        )


def _appended(answers: Sequence[Appended | BrokerError]) -> list[Appended]:
    errors = [one for one in answers if isinstance(one, BrokerError)]
    if errors:
        # What was only behind another one is less of a reason.
        raise next(
            (one for one in errors if one.code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), errors[0]
        )
    return [one for one in answers if not isinstance(one, BrokerError)]


async def _hasten(decision: trio.CancelScope) -> None:
    """Once cancelled, leave the decision some seconds."""
    try:
        await trio.sleep_forever()
    finally:
        decision.deadline = trio.current_time() + PATIENCE_S


def _code(response: Any) -> tuple[int, str | None]:
    return response.error_code, None
