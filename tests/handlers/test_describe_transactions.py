"""DescribeTransactions: what the coordinator knows of some transactional ids."""

from typing import Any

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.answers import REPEATED
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_transactions import DescribeTransactionsRequest
from support.transactional import add_request, begin, end_request


async def described(send: Any, *names: str) -> list[Any]:
    return list((await send(DescribeTransactionsRequest(transactional_ids=names), 0)).transaction_states)


async def test_a_transaction_from_begin_to_end(
    broker: Broker, coordinators: None, send: Any, clock: Any
) -> None:
    await broker.topics.create("t", 3, {})
    began = clock.now_ms()
    producer = await begin(send)
    clock.advance(1000)
    await send(add_request(producer, {"t": [2]}), 5)
    (found,) = await described(send, "id")
    assert (found.error_code, found.transactional_id, found.transaction_state) == (0, "id", "Ongoing")
    assert (found.producer_id, found.producer_epoch) == (producer.producer_id, producer.producer_epoch)
    assert (found.transaction_timeout_ms, found.transaction_start_time_ms) == (60_000, began)
    assert [(topic.topic, list(topic.partitions)) for topic in found.topics] == [("t", [0, 2])]
    await send(end_request(producer, commit=False), 4)
    (found,) = await described(send, "id")
    assert (found.transaction_state, list(found.topics)) == ("CompleteAbort", [])


async def test_ids_that_do_not_exist(send: Any) -> None:
    found = await described(send, "", "missing")
    assert [(each.transactional_id, each.error_code) for each in found] == [
        ("", ErrorCode.INVALID_REQUEST),
        ("missing", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
    ]


async def test_an_id_that_is_repeated_is_answered_a_few_times(send: Any) -> None:
    found = await described(send, *["a"] * 100, "b")
    assert [each.transactional_id for each in found] == ["a"] * (1 + REPEATED) + ["b"]
