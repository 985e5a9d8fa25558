"""Sessions with many subscriptions: what is written for a change, and that a start puts it together again."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_mqtt.session.types import Subscription
from leafcuttr_mqtt.storage import formats
from leafcuttr_mqtt.storage.session_records import BUCKETS, DIVIDED_ABOVE, SessionRecords, joined
from leafcuttr_mqtt.storage.state import Bucket, SessionRecord
from support.gates_slice import sampled


class Topic:
    """A compacted topic, and what a start reads in it."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.written: list[bytes] = []

    def put(self, records: Iterable[tuple[bytes, bytes | None]]) -> int:
        """How many bytes they are."""
        size = 0
        for key, value in records:
            self.written.append(key)
            size += len(key) + len(value or b"")
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = value
        return size

    def read(self) -> tuple[dict[str, SessionRecord], dict[str, dict[int, Bucket]]]:
        sessions: dict[str, SessionRecord] = {}
        buckets: dict[str, dict[int, Bucket]] = {}
        for key, value in self.values.items():
            place = formats.decode_bucket_key(key)
            if place is None:
                sessions[key.decode()] = formats.decode_session(key, value)
            else:
                buckets.setdefault(place[0], {})[place[1]] = formats.decode_bucket(value)
        return joined(sessions, buckets), buckets


def subscriptions(count: int, qos: int = 1) -> tuple[Subscription, ...]:
    return tuple(Subscription(f"devices/{number}/state", qos) for number in range(count))


def session(number: int, subscribed: tuple[Subscription, ...]) -> SessionRecord:
    return SessionRecord("c", number, 60, subscriptions=subscribed)


def test_a_session_with_few_is_one_record() -> None:
    topic, records = Topic(), SessionRecords()
    topic.put(records.of("c", session(1, subscriptions(DIVIDED_ABOVE))))
    assert topic.written == [b"c"]
    assert topic.read() == ({"c": session(1, subscriptions(DIVIDED_ABOVE))}, {})


def test_one_more_of_many_costs_a_small_part() -> None:
    topic, records = Topic(), SessionRecords()
    whole = topic.put(records.of("c", session(1, subscriptions(9_999))))
    topic.written.clear()
    more = topic.put(records.of("c", session(1, subscriptions(10_000))))
    assert topic.written[1:] == [b"c"], "the bucket, and then the session"
    assert more < whole / 100
    again = topic.put(records.of("c", session(1, subscriptions(10_000))))
    assert again < 300, "nothing of the subscriptions has changed"
    read, buckets = topic.read()
    assert set(read["c"].subscriptions) == set(subscriptions(10_000))
    assert len(buckets["c"]) == BUCKETS


def test_buckets_come_before_the_session_that_needs_them() -> None:
    topic, records = Topic(), SessionRecords()
    topic.put(records.of("c", session(1, subscriptions(1_000))))
    assert topic.written[-1] == b"c"
    assert topic.written.count(b"c") == 1


def test_what_is_left_of_an_earlier_session_does_not_count() -> None:
    """The process ended between the two batches of a turn: the buckets are those of the earlier session."""
    topic, records = Topic(), SessionRecords()
    topic.put(records.of("c", session(1, subscriptions(1_000))))
    later = dict(SessionRecords().of("c", session(2, subscriptions(200, qos=2))))
    topic.values[b"c"] = later[b"c"] or b""
    read, buckets = topic.read()
    assert read["c"].subscriptions == ()

    after = SessionRecords()
    after.found(buckets)
    topic.put(after.of("c", session(2, subscriptions(200, qos=2))))
    read, buckets = topic.read()
    assert set(read["c"].subscriptions) == set(subscriptions(200, qos=2))
    assert {each.session for each in buckets["c"].values()} == {2}


def test_buckets_of_two_sessions() -> None:
    """The process ended between two batches with buckets: those of the earlier session are written anew, although they
    say the same."""
    topic, records = Topic(), SessionRecords()
    topic.put(records.of("c", session(1, subscriptions(1_000))))
    later = list(SessionRecords().of("c", session(2, subscriptions(1_000))))
    topic.put([*later[:100], later[-1]])
    _, buckets = topic.read()
    after = SessionRecords()
    after.found(buckets)
    topic.put(after.of("c", session(2, subscriptions(1_000))))
    assert set(topic.read()[0]["c"].subscriptions) == set(subscriptions(1_000))


def test_what_is_not_subscribed_any_more() -> None:
    topic, records = Topic(), SessionRecords()
    topic.put(records.of("c", session(1, subscriptions(1_000))))
    topic.put(records.of("c", session(1, subscriptions(10))))
    read, buckets = topic.read()
    assert set(read["c"].subscriptions) == set(subscriptions(10))
    assert len(buckets["c"]) <= 10


def test_the_end_of_a_session_deletes_all_of_it() -> None:
    topic, records = Topic(), SessionRecords()
    topic.put(records.of("c", session(1, subscriptions(1_000))))
    _, buckets = topic.read()
    after = SessionRecords()
    after.found(buckets)
    for each in (records, after):
        topic.put(each.of("c", session(1, subscriptions(1_000))))
        topic.put(each.of("c", None))
        assert topic.values == {}


def test_of_a_topic_that_was_deleted_everything_is_written_again() -> None:
    topic, records = Topic(), SessionRecords()
    topic.put(records.of("c", session(1, subscriptions(1_000))))
    topic.values.clear()
    records.topic_is_gone()
    topic.put(records.of("c", session(1, subscriptions(1_000))))
    assert set(topic.read()[0]["c"].subscriptions) == set(subscriptions(1_000))


_SUBSCRIBED = st.dictionaries(
    st.integers(0, 3 * DIVIDED_ABOVE), st.integers(0, 2), max_size=3 * DIVIDED_ABOVE
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["c", "d"]), st.integers(1, 3), st.none() | _SUBSCRIBED, st.booleans()),
        max_size=12,
    )
)
@settings(deadline=None, max_examples=sampled(60))
def test_a_start_finds_what_was_written_last(
    steps: list[tuple[str, int, dict[int, int] | None, bool]],
) -> None:
    topic, records = Topic(), SessionRecords()
    wanted: dict[str, SessionRecord] = {}
    for client_id, number, subscribed, restarts in steps:
        record = None
        if subscribed is not None:
            made = tuple(Subscription(f"t/{each}", qos) for each, qos in subscribed.items())
            record = SessionRecord(client_id, number, 60, subscriptions=made)
        topic.put(records.of(client_id, record))
        if record is None:
            wanted.pop(client_id, None)
        else:
            wanted[client_id] = record
        read, buckets = topic.read()
        assert read.keys() == wanted.keys()
        for name, each in wanted.items():
            assert sorted(read[name].subscriptions, key=str) == sorted(each.subscriptions, key=str)
            assert read[name].number == each.number
        if restarts:
            records = SessionRecords()
            records.found(buckets)
