"""FindCoordinator: this broker, at the address of the client's own listener."""

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.find_coordinator import FindCoordinatorRequest


@pytest.mark.parametrize("version", range(4))
async def test_one_key(send, broker: Broker, version: int) -> None:
    answer = await send(FindCoordinatorRequest(key="g"), version)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (0, 1, "broker.test", 19092)
    topic = broker.topics.find("__consumer_offsets")
    assert topic is not None and len(topic.partitions) == 50 and topic.internal


async def test_many_keys_at_another_listener(send, broker: Broker) -> None:
    external = broker.listeners[1]
    answer = await send(FindCoordinatorRequest(coordinator_keys=["g", ""]), 4, listener=external)
    assert [(each.key, each.node_id, each.host, each.port) for each in answer.coordinators] == [
        ("g", 1, "public.test", 29092),
        ("", 1, "public.test", 29092),
    ]


async def test_a_transactional_id_makes_the_topic_of_transactions(send, broker: Broker) -> None:
    answer = await send(FindCoordinatorRequest(key_type=1, key="t"), 3)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (0, 1, "broker.test", 19092)
    topic = broker.topics.find("__transaction_state")
    assert topic is not None and len(topic.partitions) == 50 and topic.internal
    assert topic.overrides["cleanup.policy"] == "compact"
    answer = await send(FindCoordinatorRequest(key_type=1, coordinator_keys=["t", "u"]), 6)
    assert [each.error_code for each in answer.coordinators] == [ErrorCode.NONE, ErrorCode.NONE]


@pytest.mark.parametrize("key_type", [2, 5])
async def test_other_kinds_of_keys(send, key_type: int) -> None:
    answer = await send(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["k"]), 6)
    assert answer.coordinators[0].error_code == ErrorCode.INVALID_REQUEST
