"""Which subscriptions a topic matches. The cost depends on the levels of the topic and on what it matches, not on how
many subscriptions there are.

A filter without wildcards is found by its text. The others are in a tree whose nodes stand for one level or for several
that no other filter leaves (a radix tree): a filter takes two nodes at most, however many levels it has.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from leafcuttr_mqtt.topics.cache import TopicCache
from leafcuttr_mqtt.topics.names import has_wildcard

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MATCH_BYTES: Final = 128
"""About what a subscriber takes in a cached answer."""


class Group(Generic[K, V]):
    """The subscribers that share the messages of one filter: each message goes to one of them (4.8.2)."""

    __slots__ = ("filter", "members", "share")

    def __init__(self, share: str, topic_filter: str) -> None:
        self.share: Final = share
        self.filter: Final = topic_filter
        self.members: dict[K, V] = {}
        """Never empty in an answer of `match`, and not to be changed. It is the same object until nobody is left."""


class Matched(NamedTuple, Generic[K, V]):
    """The subscriptions that a topic matches. The same object for as long as it is cached."""

    subscribers: tuple[tuple[K, tuple[V, ...]], ...]
    """Each subscriber once, with all its subscriptions that are not shared."""
    groups: tuple[Group[K, V], ...]
    """One for each name and filter ([MQTT-4.8.2-3])."""


NOTHING: Final[Matched[Any, Any]] = Matched((), ())


class _Entry(Generic[K, V]):
    """The subscriptions of one filter."""

    __slots__ = ("groups", "subscribers")

    def __init__(self) -> None:
        self.subscribers: dict[K, V] = {}
        self.groups: dict[str, Group[K, V]] | None = None

    def __bool__(self) -> bool:
        return bool(self.subscribers or self.groups)


class _Node(Generic[K, V]):
    __slots__ = ("below", "children", "here", "label", "literal")

    def __init__(self, label: str) -> None:
        self.label = label
        """The levels between the parent and this node, each with a slash behind it; empty for the root."""
        self.literal = "+/" not in label
        self.children: dict[str, _Node[K, V]] = {}
        """By their first level, with its slash."""
        self.here: _Entry[K, V] | None = None
        """Of the filter that ends here."""
        self.below: _Entry[K, V] | None = None
        """Of the filter that ends here with `#`: it matches this level too (4.7.1.2)."""

    @property
    def needed(self) -> bool:
        return self.here is not None or self.below is not None or len(self.children) > 1


class SubscriptionTree(Generic[K, V]):
    """Subscriptions of subscribers `K`, with `V` for each. Filters are valid, and without `$share/<name>/`: that is the
    argument `share`."""

    def __init__(self, cache_bytes: int = 8 * 1024 * 1024) -> None:
        self._exact: dict[str, _Entry[K, V]] = {}
        self._root: _Node[K, V] = _Node("")
        self._cache: TopicCache[Matched[K, V]] = TopicCache(cache_bytes)
        self._count = 0

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return self._count

    def add(self, topic_filter: str, key: K, value: V, share: str | None = None) -> bool:
        """Add a subscription, or replace the one of the same filter, name and subscriber; True if it is new."""
        self._forget(topic_filter)
        entry = self._entry_for(topic_filter)
        if share is None:
            members = entry.subscribers
        else:
            if entry.groups is None:
                entry.groups = {}
            group = entry.groups.get(share)
            if group is None:
                group = entry.groups[share] = Group(share, topic_filter)
            members = group.members
        new = key not in members
        members[key] = value
        self._count += new
        return new

    def remove(self, topic_filter: str, key: K, share: str | None = None) -> bool:
        """Whether there was one."""
        way = self._way(topic_filter)
        entry = self._exact.get(topic_filter) if way is None else _end(way, topic_filter)
        if entry is None:
            return False
        if share is None:
            members = entry.subscribers
        elif entry.groups is not None and (group := entry.groups.get(share)) is not None:
            members = group.members
        else:
            return False
        if key not in members:
            return False
        del members[key]
        self._count -= 1
        if share is not None and entry.groups is not None and not members:
            del entry.groups[share]
        if not entry:
            if way is None:
                del self._exact[topic_filter]
            else:
                _prune(way, topic_filter)
        self._forget(topic_filter)
        return True

    def match(self, topic: str) -> Matched[K, V]:
        """All subscriptions that a valid topic name matches."""
        found = self._cache.get(topic)
        if found is None:
            found, size = self._find(topic)
            self._cache.put(topic, found, size)
        return found

    def members(self, topic_filter: str, share: str) -> Mapping[K, V]:
        """Those that share a filter under a name."""
        way = self._way(topic_filter)
        entry = self._exact.get(topic_filter) if way is None else _end(way, topic_filter)
        group = None if entry is None or entry.groups is None else entry.groups.get(share)
        return {} if group is None else group.members

    def _find(self, topic: str) -> tuple[Matched[K, V], int]:
        entries = [entry for entry in self._entries(topic) if entry]
        if not entries:
            return NOTHING, 0
        subscribers: tuple[tuple[K, tuple[V, ...]], ...]
        if len(entries) == 1:
            subscribers = tuple([(key, (value,)) for key, value in entries[0].subscribers.items()])
        else:
            merged: dict[K, list[V]] = {}
            for entry in entries:
                for key, value in entry.subscribers.items():
                    merged.setdefault(key, []).append(value)
            subscribers = tuple([(key, tuple(values)) for key, values in merged.items()])
        groups = tuple([group for entry in entries if entry.groups for group in entry.groups.values()])
        return Matched(subscribers, groups), (len(subscribers) + len(groups)) * MATCH_BYTES

    def _entries(self, topic: str) -> Iterator[_Entry[K, V]]:
        exact = self._exact.get(topic)
        if exact is not None:
            yield exact
        path, protected = f"{topic}/", topic[0] == "$"  # [MQTT-4.7.2-1]
        waiting = [(self._root, 0)]
        while waiting:
            node, at = waiting.pop()
            if node.below is not None and not (protected and not at):
                yield node.below
            if at == len(path):
                if node.here is not None:
                    yield node.here
                continue
            children = node.children
            if not children:
                continue
            child = children.get(path[at : path.index("/", at) + 1])
            if child is not None and (end := _after(child, path, at)):
                waiting.append((child, end))
            if not (protected and not at):
                child = children.get("+/")
                if child is not None and (end := _after(child, path, at)):
                    waiting.append((child, end))

    def _entry_for(self, topic_filter: str) -> _Entry[K, V]:
        if not has_wildcard(topic_filter):
            return self._exact.setdefault(topic_filter, _Entry())
        rest, node = _levels(topic_filter), self._root
        while rest:
            first = rest[: rest.index("/") + 1]
            child = node.children.get(first)
            if child is None:
                child = node.children[first] = _Node(rest)
            common = _common(child.label, rest)
            if common < len(child.label):
                between: _Node[K, V] = _Node(child.label[:common])
                _relabel(child, child.label[common:])
                between.children[_first(child)] = child
                node.children[first] = child = between
            node, rest = child, rest[common:]
        if topic_filter[-1] == "#":
            if node.below is None:
                node.below = _Entry()
            return node.below
        if node.here is None:
            node.here = _Entry()
        return node.here

    def _way(self, topic_filter: str) -> list[_Node[K, V]] | None:
        """The nodes from the root to that of a filter with wildcards; empty if there is none, and None for a filter
        that has no wildcards."""
        if not has_wildcard(topic_filter):
            return None
        rest, way = _levels(topic_filter), [self._root]
        while rest:
            child = way[-1].children.get(rest[: rest.index("/") + 1])
            if child is None or not rest.startswith(child.label):
                return []
            way.append(child)
            rest = rest[len(child.label) :]
        return way

    def _forget(self, topic_filter: str) -> None:
        """Answers that a change of this filter makes wrong."""
        if has_wildcard(topic_filter):
            self._cache.clear()
        else:
            self._cache.discard(topic_filter)


def _levels(topic_filter: str) -> str:
    """A filter as labels have it: a slash behind each level, and no `#`."""
    return topic_filter[:-1] if topic_filter[-1] == "#" else f"{topic_filter}/"


def _after(node: _Node[K, V], path: str, at: int) -> int:
    """Where a path goes on behind the levels of a node; 0 if it has others."""
    if node.literal:
        return at + len(node.label) if path.startswith(node.label, at) else 0
    for level in node.label.split("/")[:-1]:
        end = path.find("/", at)
        if end < 0 or level not in ("+", path[at:end]):
            return 0
        at = end + 1
    return at


def _common(label: str, rest: str) -> int:
    """How many characters of whole levels two labels have in common."""
    if rest.startswith(label):
        return len(label)
    at = 0
    for one, other in zip(label.split("/")[:-1], rest.split("/")[:-1], strict=False):
        if one != other:
            break
        at += len(one) + 1
    return at


def _first(node: _Node[K, V]) -> str:
    return node.label[: node.label.index("/") + 1]


def _relabel(node: _Node[K, V], label: str) -> None:
    node.label, node.literal = label, "+/" not in label


def _end(way: list[_Node[K, V]], topic_filter: str) -> _Entry[K, V] | None:
    if not way:
        return None
    return way[-1].below if topic_filter[-1] == "#" else way[-1].here


def _prune(way: list[_Node[K, V]], topic_filter: str) -> None:
    """Take an entry away at the end of a way, and the nodes that nothing needs then."""
    node = way.pop()
    if topic_filter[-1] == "#":
        node.below = None
    else:
        node.here = None
    while way and not node.needed:
        parent = way.pop()
        first = _first(node)
        if node.children:
            (child,) = node.children.values()
            _relabel(child, node.label + child.label)
            parent.children[first] = child
            return
        del parent.children[first]
        node = parent
