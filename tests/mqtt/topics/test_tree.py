"""The tree beside `matches`, which looks at one filter alone."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_mqtt.topics.names import matches, why_no_filter, why_no_name
from leafcuttr_mqtt.topics.tree import NOTHING, SubscriptionTree, _Node
from support.gates_slice import sampled

Tree = SubscriptionTree[str, int]


def nodes(tree: SubscriptionTree[Any, Any]) -> list[_Node[Any, Any]]:
    found = [tree._root]
    for node in found:
        found += node.children.values()
    return found


def test_each_subscriber_comes_once_with_all_its_subscriptions() -> None:
    tree: Tree = SubscriptionTree()
    assert tree.match("a/b") is NOTHING
    assert tree.add("a/b", "x", 1)
    assert tree.match("a/b").subscribers == (("x", (1,)),)
    assert tree.add("a/#", "x", 2)
    assert tree.add("+/b", "y", 3)
    subscribers = dict(tree.match("a/b").subscribers)
    assert (sorted(subscribers["x"]), subscribers["y"]) == ([1, 2], (3,))
    assert len(tree) == 3
    assert tree.match("a/b") is tree.match("a/b")


def test_a_subscription_replaces_that_of_the_same_filter() -> None:
    tree: Tree = SubscriptionTree()
    for topic_filter in ("a/+", "a/b"):
        assert tree.add(topic_filter, "x", 1)
        tree.match("a/b")
        assert not tree.add(topic_filter, "x", 2)
    assert (tree.match("a/b").subscribers, len(tree)) == ((("x", (2, 2)),), 2)


def test_what_is_removed_is_gone() -> None:
    tree: Tree = SubscriptionTree()
    for topic_filter in ("a/+", "a/b"):
        for share in (None, "s"):
            assert not tree.remove(topic_filter, "x", share)
            tree.add(topic_filter, "x", 1, share)
            assert tree.match("a/b") is not NOTHING
            assert not tree.remove(topic_filter, "y", share)
            assert not tree.remove(topic_filter, "x", "other")
            assert not tree.remove(f"{topic_filter}/c", "x", share)
            assert tree.remove(topic_filter, "x", share)
            assert tree.match("a/b") is NOTHING
    assert (len(tree), len(nodes(tree)), tree._exact) == (0, 1, {})


def test_shared_subscriptions_are_groups_beside_the_others() -> None:
    tree: Tree = SubscriptionTree()
    tree.add("a/#", "x", 0)
    tree.add("a/#", "x", 1, "one")
    tree.add("a/#", "y", 2, "one")
    tree.add("a/#", "z", 3, "two")
    tree.add("a/b", "z", 4, "one")
    found = tree.match("a/b")
    assert found.subscribers == (("x", (0,)),)
    assert sorted((group.share, group.filter, tuple(group.members.items())) for group in found.groups) == [
        ("one", "a/#", (("x", 1), ("y", 2))),
        ("one", "a/b", (("z", 4),)),
        ("two", "a/#", (("z", 3),)),
    ]
    assert tree.members("a/#", "one") == {"x": 1, "y": 2}
    assert tree.members("a/#", "three") == tree.members("b/#", "one") == tree.members("a", "one") == {}
    (group,) = tree.match("a").groups[:1]
    tree.remove("a/#", "x", "one")
    assert group in tree.match("a").groups
    tree.remove("a/#", "y", "one")
    assert [each.share for each in tree.match("a").groups] == ["two"]


@pytest.mark.parametrize("topic", ["$SYS", "$SYS/a", "$SYS/a/b", "$", "$/"])
def test_topics_with_a_dollar_sign_are_not_for_wildcards_in_its_place(topic: str) -> None:
    tree: Tree = SubscriptionTree()
    for topic_filter in ("#", "+", "+/#", "+/a", "+/a/+", "+/+", "+/"):
        tree.add(topic_filter, "x", 1)
    assert tree.match(topic) is NOTHING
    tree.add("$SYS/#", "x", 2)
    tree.add("$/#", "x", 3)
    assert tree.match(topic).subscribers == (("x", (2 if "SYS" in topic else 3,)),)


def test_a_filter_takes_two_nodes_however_many_levels_it_has() -> None:
    tree: Tree = SubscriptionTree()
    for number in range(50):
        topic_filter = "/".join(["a"] * (number * 100)) + f"/{number}/+/x/#"
        tree.add(topic_filter, "x", number)
        tree.add("+/" * 30_000 + str(number), "x", number)
    assert len(nodes(tree)) <= 2 * 100 + 1
    assert tree.match("/".join(["a"] * 300) + "/3/b/x/y").subscribers == (("x", (3,)),)
    assert tree.match("b/" * 30_000 + "7").subscribers == (("x", (7,)),)


def test_what_it_looks_at_does_not_grow_with_the_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: how often it looks whether a node fits."""
    looks = 0

    def after(node: Any, path: str, at: int) -> int:
        nonlocal looks
        looks += 1
        return original(node, path, at)

    from leafcuttr_mqtt.topics import tree as module

    original = module._after
    monkeypatch.setattr(module, "_after", after)
    tree: Tree = SubscriptionTree()
    seen = set()
    for number in range(20_000):
        tree.add(f"site/{number}/+", f"c{number}", 1)
        tree.add(f"+/{number}/temperature", f"c{number}", 2)
        tree.add(f"exact/{number}", f"c{number}", 3)
        if number in (10, 100, 1000, 19_999):
            looks = 0
            assert tree.match(f"site/{number}/temperature").subscribers[0][0] == f"c{number}"
            seen.add(looks)
    assert seen == {4}


LEVELS = st.lists(st.sampled_from(["", "a", "b", "$c", "+"]), min_size=1, max_size=5)
FILTERS = st.builds(lambda levels, hash_: "/".join(levels + ["#"] * hash_), LEVELS, st.booleans()).filter(
    lambda text: why_no_filter(text) is None
)
TOPICS = LEVELS.map("/".join).filter(lambda text: why_no_name(text) is None)
STEPS = st.tuples(
    st.booleans(), FILTERS, st.sampled_from("xyz"), st.sampled_from([None, "s", "t"]), st.integers(0, 9)
)


@settings(max_examples=sampled(300))
@given(st.lists(STEPS, max_size=40), st.lists(TOPICS, min_size=1, max_size=6))
def test_it_finds_what_a_look_at_each_filter_finds(
    steps: list[tuple[bool, str, str, str | None, int]], topics: list[str]
) -> None:
    tree: Tree = SubscriptionTree(4000)
    truth: dict[tuple[str, str, str | None], int] = {}
    for add, topic_filter, key, share, value in steps:
        one = (topic_filter, key, share)
        if add:
            assert tree.add(topic_filter, key, value, share) == (one not in truth)
            truth[one] = value
        else:
            assert tree.remove(topic_filter, key, share) == (truth.pop(one, None) is not None)
        assert len(tree) == len(truth)
        for topic in topics:
            found = tree.match(topic)
            assert [key for key, _ in found.subscribers] == list(dict(found.subscribers))
            got = [(key, None, value) for key, values in found.subscribers for value in values]
            got += [
                (key, (g.share, g.filter), value) for g in found.groups for key, value in g.members.items()
            ]
            assert all(group.members for group in found.groups)
            wanted = [
                (key, share and (share, topic_filter), value)
                for (topic_filter, key, share), value in truth.items()
                if matches(topic_filter, topic)
            ]
            assert sorted(got, key=str) == sorted(wanted, key=str)
    filters = len({topic_filter for topic_filter, _, _ in truth})
    assert len(nodes(tree)) <= 2 * filters + 1
    for topic_filter, key, share in truth:
        assert tree.remove(topic_filter, key, share)
    assert (len(nodes(tree)), tree._exact) == (1, {})
