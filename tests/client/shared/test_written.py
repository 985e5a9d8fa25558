"""What leaders and coordinators tell of a producer's epoch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from leafcuttr.client.calls import Calls
from leafcuttr.client.errors import ApiNotOffered
from leafcuttr.client.producing.stamp import ProducerIdentity
from leafcuttr.client.shared.owner import SharedProducer
from leafcuttr.client.shared.written import described, partitions_of, records_written
from leafcuttr.errors import BrokerError, RequestTimedOut, TopicAuthorizationFailed
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.types import TopicPartition
from support.shared_transactions import write

OpenOwner = Callable[..., AbstractAsyncContextManager[SharedProducer]]


async def test_records_of_this_epoch(calls: Calls, opened: OpenOwner, topic: str) -> None:
    first, second, absent = (TopicPartition(topic, number) for number in (0, 1, 9))
    async with opened(f"x-{topic}") as owner:
        shared = await owner.begin_shared()
        await write(calls, shared, first, b"a", b"b")
        ours = ProducerIdentity(shared.producer_id, shared.epoch)
        assert await records_written(calls, ours, [first, second, absent]) == {first: 2, second: 0}
        earlier = ProducerIdentity(shared.producer_id, shared.epoch - 1)
        other = ProducerIdentity(shared.producer_id + 1, shared.epoch)
        for identity in (earlier, other):
            assert await records_written(calls, identity, [first]) == {first: 0}
        assert await records_written(calls, ours, []) == {}


async def test_the_partitions_of_a_transaction_without_those_of_offsets(
    calls: Calls, opened: OpenOwner, topic: str
) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 2)
    async with opened(f"x-{topic}") as owner:
        shared = await owner.begin_shared()
        for tp in (first, second):
            await write(calls, shared, tp, b"a")
        await owner.commit_offsets(f"g-{topic}", {first: CommittedOffset(1)})
        state = await described(calls, f"x-{topic}")
        assert state is not None
        assert (state.producer_id, state.producer_epoch) == owner.identity
        assert len(state.topics) == 2
        assert partitions_of(state) == {first, second}
        await owner.abort()
    assert await described(calls, f"nothing-of-{topic}") is None


@pytest.mark.parametrize(
    ("error", "tells"),
    [
        (TopicAuthorizationFailed("t"), True),
        (RequestTimedOut("the broker does not offer DescribeProducers"), True),
        (RequestTimedOut("no answer"), False),
    ],
)
async def test_a_cluster_that_does_not_tell(
    calls: Calls, error: BrokerError, tells: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(*_: object) -> None:
        if "offer" in str(error):
            raise error from ApiNotOffered(str(error))
        raise error

    monkeypatch.setattr(Calls, "leaders", refuses)
    tp = TopicPartition("t", 0)
    if tells:
        assert await records_written(calls, ProducerIdentity(1, 1), [tp]) is None
        return
    with pytest.raises(RequestTimedOut):
        await records_written(calls, ProducerIdentity(1, 1), [tp])
