"""ListTransactions: the filters, each by itself and together."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.list_transactions import ListTransactionsRequest
from support.transactional import Producer, begin, end_request, init


@pytest.fixture
async def producers(broker: Broker, coordinators: None, send: Any, clock: Any) -> dict[str, Producer]:
    """`old` and `new` have transactions going on, begun a minute apart; `over` has committed, `idle` has none."""
    await broker.topics.create("t", 1, {})
    found = {"old": await begin(send, "old")}
    clock.advance(50_000)
    found |= {
        "new": await begin(send, "new"),
        "over": await begin(send, "over"),
        "idle": await init(send, "idle"),
    }
    assert not (await send(end_request(found["over"], commit=True), 4)).error_code
    return found


async def listed(send: Any, version: int = 2, **filters: Any) -> dict[str, str]:
    answer = await send(ListTransactionsRequest(**filters), version)
    assert answer.error_code == ErrorCode.NONE
    return {each.transactional_id: each.transaction_state for each in answer.transaction_states}


@pytest.mark.parametrize("version", range(3))
async def test_every_version_lists_all(send: Any, producers: dict[str, Producer], version: int) -> None:
    assert await listed(send, version) == {
        "old": "Ongoing",
        "new": "Ongoing",
        "over": "CompleteCommit",
        "idle": "Empty",
    }


async def test_by_state(send: Any, producers: dict[str, Producer]) -> None:
    assert set(await listed(send, state_filters=["Empty", "CompleteCommit"])) == {"idle", "over"}
    answer = await send(ListTransactionsRequest(state_filters=["Empty", "Nonsense"]), 2)
    assert list(answer.unknown_state_filters) == ["Nonsense"]
    assert [each.transactional_id for each in answer.transaction_states] == ["idle"]
    assert await listed(send, state_filters=["Nonsense"]) == {}


async def test_by_producer_id(send: Any, producers: dict[str, Producer]) -> None:
    assert set(await listed(send, producer_id_filters=[producers["old"].producer_id, 999])) == {"old"}


async def test_by_duration(send: Any, producers: dict[str, Producer]) -> None:
    ongoing = {"state_filters": ["Ongoing"]}
    assert set(await listed(send, duration_filter=49_999, **ongoing)) == {"old"}
    assert set(await listed(send, duration_filter=50_000, **ongoing)) == set()
    assert set(await listed(send, duration_filter=-1, **ongoing)) == {"old", "new"}


async def test_by_pattern(send: Any, producers: dict[str, Producer]) -> None:
    assert set(await listed(send, transactional_id_pattern="o.*")) == {"old", "over"}
    assert set(await listed(send, transactional_id_pattern="o")) == set()
    answer = await send(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
