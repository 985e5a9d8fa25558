"""The batches of one partition on their way, against a partition with Kafka's rules for producers."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.client.producing.lane import LAST_EPOCH, WINDOW, Call, Lane, Outgoing
from leafcuttr.client.producing.stamp import ProducerIdentity, Unstamped, checked
from leafcuttr.errors import BrokerError, ErrorCode, UnknownTopicOrPartition
from leafcuttr.wire.batch import MAX_SEQUENCE
from leafcuttr_sdk.batches import BatchBuilder
from leafcuttr_sdk.records import Appended
from leafcuttr_sdk.types import TopicPartition
from support.gates_slice import sampled

TP = TopicPartition("t", 0)
ME = ProducerIdentity(7, 0)


def batch(*values: bytes) -> Unstamped:
    builder = BatchBuilder()
    for value in values:
        builder.add(value, 1)
    return checked(builder.finish())


def lane(identity: ProducerIdentity = ME, *, transactional: bool = False) -> Lane:
    return Lane(TP, identity, transactional=transactional)


def call(into: Lane, *sizes: int, deadline: float = 100.0) -> tuple[Call, list[Outgoing]]:
    """A call of `append` with a batch of so many records each."""
    made = Call(len(sizes), deadline, lambda: None)
    return made, [into.add(made, place, batch(*[b"x"] * size)) for place, size in enumerate(sizes)]


def taken(of: Lane) -> Outgoing:
    found = of.take()
    assert found is not None
    return found


def proven(of: Lane) -> None:
    """Its first batch is acknowledged."""
    call(of, 1)
    of.acknowledged(taken(of), 0, -1)


def codes(of: Call) -> list[ErrorCode | int | None]:
    return [one.code if isinstance(one, BrokerError) else one and one.base_offset for one in of.answers]


def test_sequences_count_records_and_answers_are_offsets() -> None:
    one = lane()
    made, _ = call(one, 3)
    first = taken(one)
    assert (first.identity, first.sequence) == (ME, 0)
    one.acknowledged(first, 40, 123)
    assert made.answers == [Appended(40, 42, 123, False)]
    made, _ = call(one, 2)
    assert taken(one).sequence == 3
    assert not one.is_idle


def test_the_first_batch_of_a_producer_goes_alone() -> None:
    one = lane()
    call(one, 1, 1)
    first = taken(one)
    assert one.take() is None
    one.acknowledged(first, 0, -1)
    assert taken(one).sequence == 1


def test_five_are_under_way() -> None:
    one = lane()
    proven(one)
    call(one, *[1] * 7)
    sent = [taken(one) for _ in range(WINDOW)]
    assert one.take() is None
    assert [each.sequence for each in sent] == [1, 2, 3, 4, 5]
    one.acknowledged(sent[0], 1, -1)
    assert taken(one).sequence == 6


def test_none_is_sent_so_far_ahead_of_the_oldest_that_the_broker_would_forget_it() -> None:
    one = lane()
    proven(one)
    call(one, *[1] * 8)
    oldest, *others = (taken(one) for _ in range(WINDOW))
    one.refused(oldest, ErrorCode.NOT_LEADER_OR_FOLLOWER, None, 0)
    for number, each in enumerate(others):
        one.acknowledged(each, number, -1)
    assert taken(one) is oldest
    assert one.take() is None
    one.acknowledged(oldest, 0, -1)
    assert taken(one).sequence == 6


def test_what_was_lost_is_sent_again_with_its_sequence_once_the_others_are_back() -> None:
    one = lane()
    proven(one)
    call(one, 2, 2, 2)
    first, second, third = (taken(one) for _ in range(3))
    one.lost(first, "cut", 0)
    assert one.take() is None
    assert one.refused(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None, 0) is False
    assert one.take() is None
    one.refused(third, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None, 0)
    again = [taken(one) for _ in range(3)]
    assert [(each, each.sequence, each.identity) for each in again] == [
        (first, 1, ME), (second, 3, ME), (third, 5, ME)
    ]  # fmt: skip


def test_what_passes_is_sent_again_after_a_pause() -> None:
    one = lane()
    call(one, 1)
    first = taken(one)
    assert one.refused(first, ErrorCode.NOT_ENOUGH_REPLICAS, None, 0) is True
    assert taken(one) is first


def test_a_producer_that_the_partition_has_forgotten_raises_its_epoch() -> None:
    one = lane()
    proven(one)
    call(one, 2, 2)
    first, second = taken(one), taken(one)
    assert one.refused(first, ErrorCode.UNKNOWN_PRODUCER_ID, None, 0) is True
    assert one.take() is None  # the second may be about to be appended
    one.lost(second, "cut", 0)
    assert taken(one) is first
    assert one.take() is None  # the first of an epoch goes alone
    one.acknowledged(first, 9, -1)
    assert taken(one) is second
    assert [(each.identity.epoch, each.sequence) for each in (first, second)] == [(1, 0), (1, 2)]


def test_epochs_that_are_used_up() -> None:
    one = lane(ProducerIdentity(7, LAST_EPOCH))
    call(one, 1, 1)
    first = taken(one)
    one.refused(first, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None, 0)
    assert one.take() is None
    assert one.needs_identity
    one.renew(ProducerIdentity(8, 0))
    assert taken(one) is first
    assert (first.identity, first.sequence) == (ProducerIdentity(8, 0), 0)


def test_a_duplicate_without_an_offset_was_appended() -> None:
    one = lane()
    made, _ = call(one, 2)
    assert one.refused(taken(one), ErrorCode.DUPLICATE_SEQUENCE_NUMBER, None, 0) is False
    assert made.answers == [Appended(-1, -1, -1, True)]


def test_nothing_is_appended_behind_one_that_was_refused() -> None:
    one = lane()
    proven(one)
    first_call, _ = call(one, 1, 1)
    second_call, _ = call(one, 1)
    first, second, third = (taken(one) for _ in range(3))
    one.refused(first, ErrorCode.MESSAGE_TOO_LARGE, "too large", 0)
    assert codes(first_call) == [ErrorCode.MESSAGE_TOO_LARGE, None]
    # The call is under way, so later ones are refused; and what was sent is waited for.
    later, _ = call(one, 1)
    assert codes(later) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert one.take() is None
    one.refused(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None, 0)
    one.refused(third, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None, 0)
    assert codes(first_call)[1] == codes(second_call)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    call(one, 1)
    anew = taken(one)
    assert (anew.identity.epoch, anew.sequence) == (1, 0)


def test_nothing_is_appended_until_the_caller_knows_of_the_failure() -> None:
    """Its task may run some time after the answer: what is called meanwhile is still behind."""
    one = lane()
    proven(one)
    failed, _ = call(one, 1)
    failed.is_awaited = True
    one.refused(taken(one), ErrorCode.INVALID_TIMESTAMP, None, 0)
    assert codes(failed) == [ErrorCode.INVALID_TIMESTAMP]
    meanwhile, _ = call(one, 1)
    assert codes(meanwhile) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    failed.is_awaited = False
    call(one, 1)
    assert taken(one).identity == ProducerIdentity(7, 1)


def test_what_waits_behind_one_that_was_refused_fails_at_once() -> None:
    one = lane()
    made, _ = call(one, 1, 1, 1)
    one.refused(taken(one), ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, 0)
    assert codes(made) == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        *[ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2,
    ]
    assert one.is_idle


def test_what_comes_while_the_rest_of_a_failure_is_under_way_fails_with_it() -> None:
    one = lane()
    proven(one)
    failed, _ = call(one, 1)
    behind, _ = call(one, 1)
    first, second = taken(one), taken(one)
    one.refused(first, ErrorCode.MESSAGE_TOO_LARGE, None, 0)
    assert codes(failed) == [ErrorCode.MESSAGE_TOO_LARGE]
    made, _ = call(one, 1)
    assert made.left
    assert one.take() is None
    one.refused(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None, 0)
    assert codes(behind) == codes(made) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]


def test_what_comes_while_the_rest_is_under_way_is_sent_if_that_was_appended() -> None:
    one = lane()
    proven(one)
    failed, _ = call(one, 1, deadline=1)
    call(one, 1)
    first, second = taken(one), taken(one)
    one.lost(first, "cut", 2)
    assert codes(failed) == [ErrorCode.REQUEST_TIMED_OUT]
    made, _ = call(one, 1)
    one.acknowledged(second, 2, -1)  # so the first was appended too
    assert taken(one).call is made


def test_a_refusal_of_what_may_have_been_appended_before_is_not_certain() -> None:
    one = lane()
    made, _ = call(one, 1)
    one.lost(taken(one), "cut", 0)
    one.refused(taken(one), ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no", 0)
    assert str(made.answers[0]) == "t-0: not acknowledged in time, it may have been appended: no"


def test_time_that_is_over() -> None:
    one = lane()
    made, _ = call(one, 1, deadline=5)
    first = taken(one)
    one.expire(9, "no leader")
    assert made.left  # it is under way
    one.lost(first, "cut", 4)
    one.expire(4, "no leader")
    assert made.left
    one.expire(5, "no leader")
    assert codes(made) == [ErrorCode.REQUEST_TIMED_OUT]
    assert str(made.answers[0]) == "t-0: not acknowledged in time, it may have been appended: cut"
    made, _ = call(one, 1, deadline=6)
    one.expire(7, "no leader")
    assert str(made.answers[0]) == "t-0: not acknowledged in time, it was not appended: no leader"


def test_what_is_given_up_may_have_been_appended_before() -> None:
    one = lane()
    made, _ = call(one, 1, 1)
    one.give_up(UnknownTopicOrPartition("gone"))
    assert codes(made) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    made, _ = call(one, 1)
    one.give_up(UnknownTopicOrPartition("gone"))
    made, _ = call(one, 1)
    one.lost(taken(one), "cut", 0)
    one.give_up(UnknownTopicOrPartition("gone"))
    assert str(made.answers[0]) == "t-0: not acknowledged in time, it may have been appended: gone"
    one.give_up(UnknownTopicOrPartition("gone"))  # nothing is left


def test_an_answer_that_passes_but_comes_too_late_is_the_last() -> None:
    one = lane()
    made, _ = call(one, 1, deadline=5)
    one.refused(taken(one), ErrorCode.NOT_LEADER_OR_FOLLOWER, None, 6)
    assert codes(made) == [ErrorCode.REQUEST_TIMED_OUT]


def test_without_a_producer_id_one_batch_at_a_time() -> None:
    one = lane(ProducerIdentity())
    call(one, 1, 1)
    first = taken(one)
    assert (first.sequence, first.identity.producer_id) == (-1, -1)
    assert one.take() is None
    one.lost(first, "cut", 0)
    assert taken(one) is first
    one.acknowledged(first, 0, -1)
    assert taken(one).sequence == -1


def test_in_a_transaction_the_first_need_not_go_alone_and_epochs_stay() -> None:
    one = lane(transactional=True)
    made, _ = call(one, 1, 1)
    first, second = taken(one), taken(one)
    one.refused(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None, 0)  # it overtook the first
    one.refused(first, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None, 0)
    assert codes(made) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2
    call(one, 1)
    assert taken(one).identity == ME


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE])
def test_in_a_transaction_a_lost_epoch_is_an_error(code: ErrorCode) -> None:
    one = lane(transactional=True)
    made, _ = call(one, 1)
    one.refused(taken(one), code, None, 0)
    assert codes(made) == [code]


def test_sequences_begin_at_0_behind_the_largest() -> None:
    one = lane()
    proven(one)
    one._sequence = MAX_SEQUENCE
    call(one, 2, 1)
    assert [taken(one).sequence, taken(one).sequence] == [MAX_SEQUENCE, 1]


# --- against a partition ------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    first: int
    last: int
    offset: int


class Partition:
    """What a leader knows of producers, by Kafka's ProducerStateManager."""

    def __init__(self) -> None:
        self.log: list[Outgoing] = []
        self._epochs: dict[int, int] = {}
        self._entries: dict[int, deque[_Entry]] = {}

    def append(self, outgoing: Outgoing, identity: ProducerIdentity, sequence: int) -> tuple[ErrorCode, int]:
        producer_id, epoch = identity
        known = self._epochs.get(producer_id)
        entries = self._entries.setdefault(producer_id, deque(maxlen=WINDOW))
        last = sequence + outgoing.batch.records - 1
        if known is not None and epoch < known:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if known is not None and epoch > known:
            if sequence:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            entries.clear()
        for entry in entries:
            if (entry.first, entry.last) == (sequence, last):
                return ErrorCode.NONE, entry.offset
        if entries and sequence != entries[-1].last + 1:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        self._epochs[producer_id] = epoch
        entries.append(_Entry(sequence, last, len(self.log)))
        self.log.append(outgoing)
        return ErrorCode.NONE, entries[-1].offset


class _Sent(NamedTuple):
    outgoing: Outgoing
    identity: ProducerIdentity
    sequence: int


@settings(max_examples=sampled(60), deadline=None)
@given(st.randoms(use_true_random=False))
def test_no_batch_is_lost_or_doubled_or_overtaken(random: Random) -> None:
    """Connections that are cut at any moment, requests on dead connections that arrive late, answers that are lost,
    leaders that refuse for a while or for good, calls that come beside each other."""
    one, partition = lane(), Partition()
    now = 0.0
    began: dict[Call, int] = {}
    done: dict[Call, int] = {}
    batches: list[Outgoing] = []
    connection: deque[_Sent] = deque()
    answers: deque[tuple[Outgoing, ErrorCode, int]] = deque()
    late: list[deque[_Sent]] = []

    def begin() -> None:
        made = Call(
            random.randint(1, 3), now + random.choice([2, 20, 200]), lambda: done.setdefault(made, step_of())
        )
        began[made] = step_of()
        for place in range(made.left):
            batches.append(one.add(made, place, batch(*[b"x"] * random.randint(1, 3))))

    steps = 0

    def step_of() -> int:
        nonlocal steps
        steps += 1
        return steps

    def arrive(queue: deque[_Sent], *, refuses: bool) -> tuple[Outgoing, ErrorCode, int]:
        outgoing, identity, sequence = queue.popleft()
        if refuses:
            return (
                outgoing,
                random.choice([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.MESSAGE_TOO_LARGE]),
                -1,
            )
        return outgoing, *partition.append(outgoing, identity, sequence)

    def take_answer() -> None:
        outgoing, code, offset = answers.popleft()
        if code:
            one.refused(outgoing, code, None, now)
        else:
            one.acknowledged(outgoing, offset, -1)

    def cut() -> None:
        for outgoing in [*(answer[0] for answer in answers), *(sent.outgoing for sent in connection)]:
            one.lost(outgoing, "cut", now)
        if connection:
            late.append(deque(connection))
        answers.clear()
        connection.clear()

    def quiet() -> bool:
        return one.is_idle and not connection and not answers

    for _ in range(random.randint(10, 120)):
        match random.choice(
            [
                "begin",
                "take",
                "take",
                "take",
                "arrive",
                "arrive",
                "answer",
                "answer",
                "cut",
                "late",
                "expire",
                "refuse",
            ]
        ):
            case "begin" if len(began) - len(done) < 5:
                begin()
            case "take" if (outgoing := one.take()) is not None:
                connection.append(_Sent(outgoing, outgoing.identity, outgoing.sequence))
            case "arrive" if connection:
                answers.append(arrive(connection, refuses=False))
            case "refuse" if connection:
                answers.append(arrive(connection, refuses=True))
            case "answer" if answers:
                take_answer()
            case "cut" if random.random() < 0.3:
                cut()
            case "late" if late:
                queue = late[random.randrange(len(late))]
                if queue:
                    arrive(queue, refuses=False)
            case "expire":
                now += 1
                one.expire(now, "no leader")
            case _:
                pass
    while not quiet():
        now += 1
        if (outgoing := one.take()) is not None:
            connection.append(_Sent(outgoing, outgoing.identity, outgoing.sequence))
        if connection:
            answers.append(arrive(connection, refuses=False))
        if answers:
            take_answer()
        one.expire(now, "no leader")
    for queue in late:
        while queue:
            arrive(queue, refuses=False)

    assert len(done) == len(began)
    stored = {id(outgoing): place for place, outgoing in enumerate(partition.log)}
    assert len(stored) == len(partition.log), "a batch was appended twice"
    for outgoing in batches:
        answer = outgoing.call.answers[outgoing.place]
        if isinstance(answer, Appended):
            assert stored[id(outgoing)] == answer.base_offset
        elif isinstance(answer, BrokerError) and answer.code is not ErrorCode.REQUEST_TIMED_OUT:
            assert id(outgoing) not in stored, f"{answer.code} although it was appended"
    places = [stored[id(outgoing)] for outgoing in batches if id(outgoing) in stored]
    assert places == sorted(places), "a batch was overtaken"
    for number, failed in enumerate(batches):
        if id(failed) in stored:
            continue
        for later in batches[number + 1 :]:
            behind = began[later.call] < done[failed.call]
            assert not (behind and id(later) in stored), "a batch was appended behind one that was not"
