from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.topics.cache import ENTRY_BYTES, TopicCache


def test_what_is_put_is_there_until_it_is_discarded() -> None:
    cache: TopicCache[int] = TopicCache()
    assert cache.get("a") is None
    cache.put("a", 1)
    assert (cache.get("a"), cache.recent, len(cache)) == (1, {"a": 1}, 1)
    cache.put("a", 2)
    assert (cache.get("a"), len(cache)) == (2, 1)
    cache.discard("a")
    cache.discard("a")
    assert cache.get("a") is None
    cache.put("b", 1)
    cache.clear()
    assert (cache.get("b"), len(cache)) == (None, 0)


def test_what_is_asked_for_stays_and_the_others_go() -> None:
    entries = 10
    cache: TopicCache[int] = TopicCache(2 * entries * (ENTRY_BYTES + 2 * 4))
    cache.put("keep", 0)
    for n in range(1000):
        cache.put(f"{n:04}", n)
        assert cache.get("keep") == 0
        assert len(cache) <= 2 * entries
    assert cache.get("0999") == 999
    assert cache.get("0500") is None


def test_long_topics_and_large_values_do_not_make_it_grow() -> None:
    cache: TopicCache[int] = TopicCache(100_000)
    cache.put("x" * 25_000, 1)
    cache.put("large", 1, 50_000)
    assert len(cache) == 0
    for n in range(100):
        cache.put(f"{n}" * 1000, n, 8000)
    assert len(cache) <= 12


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "get", "discard", "clear"]),
            st.sampled_from("abcdef"),
            st.integers(0, 500),
        )
    )
)
def test_it_never_gives_what_is_not_true(steps: list[tuple[str, str, int]]) -> None:
    cache: TopicCache[int] = TopicCache(2000)
    truth: dict[str, int] = {}
    for what, topic, number in steps:
        if what == "put":
            truth[topic] = number
            cache.put(topic, number, number)
        elif what == "get":
            assert cache.get(topic) in (None, truth.get(topic))
        elif what == "discard":
            truth.pop(topic, None)
            cache.discard(topic)
            assert cache.get(topic) is None
        else:
            truth.clear()
            cache.clear()
            assert len(cache) == 0
        assert cache._size == sum(cache._sizes.values()) <= 1000
        assert cache._sizes.keys() == cache.recent.keys()
        assert cache._older_sizes.keys() == cache._older.keys()
        assert not cache.recent.keys() & cache._older.keys()
