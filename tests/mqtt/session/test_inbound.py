"""What a client has under way: packet identifiers of QoS 2, message numbers, the receive maximum. The exchanges are in
test_states, what the quota is counted down by in test_conversation."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.session.inbound import UNLIMITED, Inbound, packet_id_of_number


def received(*packet_ids: int) -> Inbound:
    inbound = Inbound()
    for each in packet_ids:
        inbound.arrive(each)
        inbound.stored(each)
    return inbound


def test_numbers_rise_and_say_the_packet_identifier() -> None:
    inbound = Inbound()
    numbers = []
    for packet_id in (5, 65_535, 1):
        assert inbound.next_number > max(numbers, default=-1)
        inbound.arrive(packet_id)
        numbers.append(inbound.number_of(packet_id))
    assert numbers == sorted(numbers)
    assert [packet_id_of_number(each) for each in numbers] == [5, 65_535, 1]
    inbound.stored(5)
    inbound.release(5)
    assert inbound.number_of(5) == numbers[0]
    inbound.completed(5)
    with pytest.raises(KeyError):
        inbound.number_of(5)
    inbound.arrive(5)
    assert inbound.number_of(5) > numbers[-1]


def test_what_awaits_pubrel() -> None:
    inbound = received(1, 2)
    inbound.arrive(3)
    inbound.release(2)
    assert inbound.received == {1: inbound.number_of(1), 2: inbound.number_of(2)}
    assert inbound.can_answer(1)
    assert inbound.can_answer(2)
    assert not inbound.can_answer(3)


def test_a_restart() -> None:
    """What awaits PUBREL is known; what was pending is not, and no number is used again."""
    inbound = received(1, 2)
    inbound.arrive(3)
    new = Inbound()
    new.restore(inbound.received.values(), inbound.next_number)
    assert new.received == inbound.received
    assert not new.arrive(1)
    assert new.arrive(3)
    assert new.number_of(3) > inbound.number_of(3)
    later = Inbound()
    later.restore([inbound.number_of(2)], 0)
    later.arrive(9)
    assert later.number_of(9) > inbound.number_of(2)
    fresh = Inbound()
    fresh.restore([], 0)
    fresh.arrive(9)
    assert fresh.number_of(9) == 9


def test_the_quota() -> None:
    """4.9: it does not rise above the receive maximum."""
    inbound = Inbound()
    assert inbound.quota == UNLIMITED
    inbound.connect(2)
    inbound.quota -= 2
    inbound.acknowledged()
    assert inbound.quota == 1
    inbound.acknowledged(5)
    assert inbound.quota == 2
    inbound.connect(None)
    assert inbound.quota == UNLIMITED
    inbound.acknowledged()
    assert inbound.quota == UNLIMITED


def test_the_quota_of_a_session_that_is_resumed() -> None:
    """4.9: a client that sends PUBREL again gets a credit for its PUBCOMP without having sent a PUBLISH."""
    inbound = received(1, 2)
    inbound.connect(1)
    inbound.quota -= 1
    for packet_id in (1, 2):
        inbound.release(packet_id)
        inbound.completed(packet_id)
        inbound.quota -= 1
    assert inbound.quota == 0
    inbound.acknowledged()
    assert inbound.quota == 1
    # Also where the server had completed it, and the PUBCOMP was lost.
    other = Inbound()
    other.connect(1)
    other.quota -= 1
    assert not other.release(7)
    assert other.quota == 1
    other.connect(65_535)
    for _ in range(3):
        other.release(7)
    assert other.quota == 65_535


def test_what_is_done_twice_counts_once() -> None:
    inbound = Inbound()
    inbound.connect(3)
    for packet_id in (1, 2, 3):
        inbound.arrive(packet_id)
        inbound.quota -= 1
    inbound.stored(2)
    assert inbound.release(2)
    assert inbound.release(2)
    for _ in range(2):
        inbound.refused(1)
        inbound.stored(2)
        inbound.completed(2)
        inbound.abandoned(3)
    assert inbound.quota == 2
    assert inbound.arrive(3)
