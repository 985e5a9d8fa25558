"""What begins and ends transactions, over a coordinator that only notes what it is to do. With real ones:
`test_transactions`, `tests/plugins/facade/test_transactions.py`."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
import trio
import trio.testing

from leafcuttr.client import transactional
from leafcuttr.client.errors import Unreachable
from leafcuttr.client.transactional import TransactionalProducerBase, TransactionBase
from leafcuttr.errors import BrokerError, InvalidRequest, StorageError
from leafcuttr_sdk.errors import ProducerFenced, TransactionAborted, TransactionTimedOut


class Noting(TransactionBase):
    def __init__(self, producer: Producer) -> None:
        super().__init__(producer.transactional_id, producer.logger)
        self._producer = producer

    async def write(self) -> None:
        self._check()
        self._begun = True

    def fail(self, why: Exception | None = None) -> None:
        self._failed, self._failure = True, why

    async def _end_with_commit(self) -> None:
        self._producer.ends.append("commit")
        await self._producer.coordinate()

    async def _end_with_abort(self) -> None:
        if self._begun:
            self._producer.ends.append("abort")
            await self._producer.coordinate()


class Producer(TransactionalProducerBase[Noting]):
    def __init__(self, name: str = "x") -> None:
        super().__init__(name, 1000, logging.getLogger("tests.transactional"))
        self.ends: list[str] = []
        self.hangs = False
        self.raises: Exception | None = None
        self.before: Callable[[], None] = lambda: None

    async def open(self) -> None:
        self._check_id()

    async def coordinate(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.raises is not None:
            raise self.raises
        if self.hangs:
            await trio.sleep_forever()

    async def _make_ready(self) -> None:
        self.before()

    def _transaction(self) -> Noting:
        return Noting(self)


async def test_the_end_of_a_block() -> None:
    """Nothing is asked for a transaction that has not begun for the coordinator."""
    producer = Producer()
    async with producer.begin():
        pass
    assert producer.ends == []
    async with producer.begin() as transaction:
        await transaction.write()
    assert producer.ends == ["commit"]
    with pytest.raises(KeyError):
        async with producer.begin() as transaction:
            await transaction.write()
            raise KeyError
    assert producer.ends == ["commit", "abort"]
    async with producer.begin() as transaction:
        await transaction.write()
        await transaction.abort()
    assert producer.ends == ["commit", "abort", "abort"]
    with pytest.raises(RuntimeError, match="This transaction has ended"):
        await transaction.write()


async def test_one_at_a_time_and_none_once_it_is_closed() -> None:
    producer = Producer()
    with pytest.raises(RuntimeError, match="This transaction has ended"):
        async with producer.begin() as transaction:
            with pytest.raises(trio.BusyResourceError):
                async with producer.begin():
                    pass
            await transaction.write()
            await producer.close()
            assert producer.ends == ["abort"]
            await transaction.write()
    with pytest.raises(RuntimeError, match="This producer is closed"):
        async with producer.begin():
            pass


async def test_one_that_is_closed_while_it_is_made_ready() -> None:
    producer = Producer()
    producer.before = lambda: setattr(producer, "_closed", True)
    with pytest.raises(RuntimeError, match="This producer is closed"):
        async with producer.begin():
            pytest.fail("it began")


@pytest.mark.parametrize(
    ("why", "said"),
    [(None, "a call was cancelled"), (StorageError("no space"), "a call failed: no space")],
)
async def test_nothing_is_committed_after_a_call_that_failed(why: Exception | None, said: str) -> None:
    producer = Producer()
    with pytest.raises(TransactionAborted, match=said) as raised:
        async with producer.begin() as transaction:
            await transaction.write()
            transaction.fail(why)
    assert raised.value.__cause__ is why
    assert producer.ends == ["abort"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StorageError("no space"), "no space"),
        (StorageError(), "KAFKA_STORAGE_ERROR"),
        (Unreachable("nobody answers"), "nobody answers"),
        (ProducerFenced(), None),
        (TransactionTimedOut(), None),
    ],
)
async def test_an_abort_that_fails_is_one_line(
    error: Exception, said: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """None where others have aborted it."""
    producer = Producer()
    async with producer.begin() as transaction:
        await transaction.write()
        producer.raises = error
        await transaction.abort()
        await transaction.abort()
    assert producer.ends == ["abort"]
    lines = [record.getMessage() for record in caplog.records]
    whole = f"the transaction of 'x' is left to its timeout, aborting it failed: {said}"
    assert lines == ([] if said is None else [whole])


async def test_an_abort_holds_up_a_cancelled_block_for_a_while(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    producer, began = Producer(), trio.current_time()
    producer.hangs = True
    with trio.move_on_after(1) as scope:
        async with producer.begin() as transaction:
            await transaction.write()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert trio.current_time() - began == 1 + transactional.PATIENCE_S
    assert "it took longer than 5 s" in caplog.text


@pytest.mark.parametrize("name", ["", "\ud800", "x" * 32768, "é" * 16384])
async def test_what_is_no_id(name: str) -> None:
    with pytest.raises(InvalidRequest):
        await Producer(name).open()
    await Producer("x" * 32767).open()


def test_its_errors() -> None:
    producer = Producer()
    for error in (producer.fenced(), producer.timed_out()):
        assert isinstance(error, BrokerError) and "'x'" in str(error)
    assert "1000 ms" in str(producer.timed_out())
