"""Shared subscriptions: which member of a group gets a message (5.0, 4.8.2)."""

from typing import Final

from leafcuttr_mqtt.routing.clients import Client
from leafcuttr_mqtt.session.types import Subscription
from leafcuttr_mqtt.topics.tree import Group

_MOST_GROUPS: Final = 10_000
"""Groups whose turn is remembered. One that is forgotten begins with its first member again."""


class Balance:
    """The members of each group in turn: first those whose clients take messages at once, then those that are slow,
    then those that are away. A session that has no connection gets messages with QoS 1 and 2 only."""

    def __init__(self) -> None:
        self._next: dict[tuple[str, str], int] = {}

    def choose(self, group: Group[Client, Subscription], qos: int) -> tuple[Client, Subscription] | None:
        """The member for a message that was published with this QoS; None: there is none now that could have it."""
        members = list(group.members.items())
        count = len(members)
        name = (group.share, group.filter)
        begin = self._next.get(name, 0) % count
        slow = away = -1
        for step in range(count):
            at = (begin + step) % count
            client, subscription = members[at]
            connection = client.connection
            if connection is not None and connection.fluent:
                return self._taken(name, at, members[at])
            if connection is not None:
                if slow < 0:
                    slow = at
            elif away < 0 and min(qos, subscription.qos):
                away = at
        chosen = slow if slow >= 0 else away
        return None if chosen < 0 else self._taken(name, chosen, members[chosen])

    def forget(self, share: str, topic_filter: str) -> None:
        """The group has no members any more."""
        self._next.pop((share, topic_filter), None)

    def _taken(
        self, name: tuple[str, str], at: int, member: tuple[Client, Subscription]
    ) -> tuple[Client, Subscription]:
        if name not in self._next and len(self._next) >= _MOST_GROUPS:
            self._next.clear()
        self._next[name] = at + 1
        return member
