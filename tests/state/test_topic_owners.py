"""Whose a topic is, in memory and after a restart."""

from collections.abc import Callable

import pytest

from leafcuttr.errors import TopicAuthorizationFailed
from leafcuttr.state.broker import Broker
from leafcuttr.state.topic_owners import check_owner


async def test_a_topic_is_its_owners_alone(start: Callable[..., Broker]) -> None:
    broker = start()
    own = await broker.topics.create("own", 2, {}, internal=True, owner="tables")
    shared = await broker.topics.create("shared", 1, {}, internal=True)
    for _ in range(2):
        check_owner(own, "tables")
        for other in (None, "other", "", "Tables"):
            with pytest.raises(TopicAuthorizationFailed, match="'own' belongs to the plugin tables"):
                check_owner(own, other)
            check_owner(shared, other)
        await broker.topics.add_partitions("own", len(own.partitions) + 1)
        await broker.topics.edit_config("own", lambda _: {"retention.ms": "1000"})
        broker = start()
        own, shared = broker.topics.by_name["own"], broker.topics.by_name["shared"]
        assert own.internal and shared.internal
    assert len(own.partitions) == 4
    await broker.topics.delete("own")
    again = await broker.topics.create("own", 1, {})
    check_owner(again)
