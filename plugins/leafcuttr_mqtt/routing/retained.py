"""Retained messages: the last one of each topic that was published with the RETAIN flag (3.3.1.3). In memory, all of
them; `storage` keeps them through a restart."""

from collections.abc import Iterator
from typing import Final

from leafcuttr_mqtt.messages import Message


class _Node:
    """A level of topics. `message` is that of the topic that ends here."""

    __slots__ = ("children", "message")

    def __init__(self) -> None:
        self.children: dict[str, _Node] | None = None
        self.message: Message | None = None


class Feed:
    """What one subscription has still to get of them."""

    __slots__ = ("has_begun", "messages")

    def __init__(self, messages: list[Message]) -> None:
        messages.reverse()
        self.messages = messages
        """The last one is the next."""
        self.has_begun = False


class RetainedMessages:
    """By topic, and in a tree of levels: a filter goes down only where it may match."""

    def __init__(self) -> None:
        self._by_topic: dict[str, Message] = {}
        self._root = _Node()
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
        node = self._root
        for level in message.topic.split("/"):
            if node.children is None:
                node.children = {}
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _Node()
            node = child
        node.message = message
        return True

    def remove(self, topic: str) -> bool:
        """Whether there was one."""
        message = self._by_topic.pop(topic, None)
        if message is None:
            return False
        self.bytes -= len(message.payload)
        way: list[tuple[_Node, str]] = []
        node = self._root
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
        if "+" not in topic_filter and "#" not in topic_filter:
            message = self._by_topic.get(topic_filter)
            found = [] if message is None else [message]
        else:
            found = list(self._below(topic_filter.split("/")))
        return [each for each in found if each.expires_ms is None or each.expires_ms > now_ms]

    def expire(self, now_ms: int) -> list[Message]:
        """Remove, and return, those that have expired."""
        expired = [
            each
            for each in self._by_topic.values()
            if each.expires_ms is not None and each.expires_ms <= now_ms
        ]
        for each in expired:
            self.remove(each.topic)
        return expired

    def _below(self, levels: list[str]) -> Iterator[Message]:
        waiting: list[tuple[_Node, int]] = [(self._root, 0)]
        end: Final = len(levels)
        while waiting:
            node, at = waiting.pop()
            if at == end:
                if node.message is not None:
                    yield node.message
                continue
            level = levels[at]
            if level == "#":
                # The level above belongs to it too (4.7.1.2), which for the first one is none.
                yield from _all(node, protected=not at)
                continue
            if node.children is None:
                continue
            if level == "+":
                waiting += [
                    (child, at + 1)
                    for name, child in node.children.items()
                    if at or not name.startswith("$")  # [MQTT-4.7.2-1]
                ]
            elif (child := node.children.get(level)) is not None:
                waiting.append((child, at + 1))


def _all(node: _Node, *, protected: bool) -> Iterator[Message]:
    """What a node and all below it have; with `protected` nothing of topics that begin with `$`."""
    waiting = [node]
    first = True
    while waiting:
        each = waiting.pop()
        if each.message is not None:
            yield each.message
        if each.children:
            waiting += [
                child
                for name, child in each.children.items()
                if not (first and protected and name.startswith("$"))
            ]
        first = False
