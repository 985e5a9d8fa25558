"""Retained messages: the last one of each topic that was published with the RETAIN flag (3.3.1.3). In memory, all of
them; `storage` keeps them through a restart."""

from collections.abc import Iterator
from typing import Final

from leafcuttr_mqtt.messages import Message


class _Node:
    """A level of topics. `message` is that of the topic that ends here."""

    __slots__ = ("children", "message", "number")

    def __init__(self) -> None:
        self.children: dict[str, _Node] | None = None
        self.message: Message | None = None
        self.number = 0
        """How many messages had been kept before this one: those later than a walk that is under way are no part of
        it."""


class Feed:
    """What one subscription has still to get of them, looked for as it is taken."""

    __slots__ = ("_walk", "is_recorded", "is_through", "next")

    def __init__(self, walk: Iterator[Message | None]) -> None:
        self._walk = walk
        self.next: Message | None = None
        """The next one, if it is found already."""
        self.is_through = False
        """There is none any more."""
        self.is_recorded = False
        """Whether the record of the session may say that there are more."""

    def look(self) -> None:
        """Take a step of the way to the next one, if it is not found."""
        if self.next is None:
            try:
                self.next = next(self._walk)
            except StopIteration:
                self.is_through = True


class RetainedMessages:
    """By topic, and in a tree of levels: a filter goes down only where it may match."""

    def __init__(self) -> None:
        self._by_topic: dict[str, Message] = {}
        self._root = _Node()
        self._protected = _Node()
        """The topics that begin with `$`, which no filter matches that begins with a wildcard ([MQTT-4.7.2-1])."""
        self._kept = 0
        self.bytes = 0
        """Of the payloads."""

    def __len__(self) -> int:
        return len(self._by_topic)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._by_topic.values())

    def get(self, topic: str) -> Message | None:
        return self._by_topic.get(topic)

    def put(self, message: Message) -> bool:
        """Keep this one in the place of the one before; an empty payload only takes that away ([MQTT-3.3.1-6],
        [MQTT-3.3.1-7]). Whether anything has changed."""
        if not message.payload:
            return self.remove(message.topic)
        before = self._by_topic.get(message.topic)
        self._by_topic[message.topic] = message
        self.bytes += len(message.payload) - (len(before.payload) if before else 0)
        node = self._root_of(message.topic)
        for level in message.topic.split("/"):
            if node.children is None:
                node.children = {}
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _Node()
            node = child
        self._kept += 1
        node.message, node.number = message, self._kept
        return True

    def remove(self, topic: str) -> bool:
        """Whether there was one."""
        message = self._by_topic.pop(topic, None)
        if message is None:
            return False
        self.bytes -= len(message.payload)
        way: list[tuple[_Node, str]] = []
        node = self._root_of(topic)
        for level in topic.split("/"):
            way.append((node, level))
            node = (node.children or {})[level]
        node.message = None
        while way and node.message is None and not node.children:
            node, level = way.pop()
            if node.children is not None:
                del node.children[level]
        return True

    def match(self, topic_filter: str, now_ms: int) -> list[Message]:
        """Those whose topics a valid filter matches, without those that have expired."""
        return [each for each in self.walk(topic_filter, now_ms) if each is not None]

    def walk(self, topic_filter: str, now_ms: int) -> Iterator[Message | None]:
        """The same in steps, between which messages may come and go: those that have come since are left out, and one
        that has gone may be among them. A step without a message is one of the way."""
        if "+" not in topic_filter and "#" not in topic_filter:
            message = self._by_topic.get(topic_filter)
            return iter(() if message is None or _has_expired(message, now_ms) else (message,))
        return self._walk(topic_filter.split("/"), self._root_of(topic_filter), self._kept, now_ms)

    def _walk(self, levels: list[str], root: _Node, before: int, now_ms: int) -> Iterator[Message | None]:
        for node in _below(root, levels):
            if node is None or node.message is None or node.number > before:
                yield None
            else:
                yield None if _has_expired(node.message, now_ms) else node.message

    def expire(self, now_ms: int) -> list[Message]:
        """Remove, and return, those that have expired."""
        expired = [each for each in self._by_topic.values() if _has_expired(each, now_ms)]
        for each in expired:
            self.remove(each.topic)
        return expired

    def _root_of(self, text: str) -> _Node:
        return self._protected if text.startswith("$") else self._root


def _has_expired(message: Message, now_ms: int) -> bool:
    return message.expires_ms is not None and message.expires_ms <= now_ms


def _below(root: _Node, levels: list[str]) -> Iterator[_Node | None]:
    """The nodes that a filter matches, and None for each other one on the way. The children of a node are looked up at
    once: that is quick however many they are."""
    end: Final = len(levels)
    waiting: list[tuple[Iterator[_Node], int]] = [(iter((root,)), 0)]
    while waiting:
        nodes, at = waiting[-1]
        node = next(nodes, None)
        if node is None:
            waiting.pop()
        elif at == end:
            yield node
        elif (level := levels[at]) == "#":
            # The level above belongs to it too (4.7.1.2), which for the first one is none.
            yield node
            if node.children:
                waiting.append((iter(list(node.children.values())), at))
        else:
            yield None
            if not node.children:
                continue
            if level == "+":
                waiting.append((iter(list(node.children.values())), at + 1))
            elif (child := node.children.get(level)) is not None:
                waiting.append((iter((child,)), at + 1))
