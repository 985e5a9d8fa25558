"""Retained messages on their way to new subscriptions, in pace with what a client takes: some hundred at a time, so
that no bound of its session is reached by them, however many there are. They are looked for as they are taken, in
steps: a filter may have to look at all topics for nothing.

A feed belongs to the session: it goes on when the client is back. Which subscriptions still have some to come is in the
record of the session; after a restart of the broker those are sent all that match, from the beginning. Live messages
are delivered meanwhile; one that has replaced a retained message stands for it.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.routing.retained import Feed
from leafcuttr_mqtt.routing.router import message_size

if TYPE_CHECKING:
    from leafcuttr_mqtt.messages import Message
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.routing.retained import RetainedMessages
    from leafcuttr_mqtt.routing.router import Router
    from leafcuttr_mqtt.session.limits import QueueLimits

AT_ONCE: Final = 200
"""Messages that wait for a client before it gets more retained ones."""
AT_ONCE_BYTES: Final = 256 * 1024
LOOKS: Final = 2000
"""Topics of a client that one step of the loop goes through: a millisecond or two."""


class Feeds:
    """All of them: a client has its own by the filters of its subscriptions, as it has sent them."""

    def __init__(
        self,
        limits: "QueueLimits",
        router: "Router",
        retained: "RetainedMessages",
        note: "Callable[[Client], None]",
    ) -> None:
        self._most: Final = min(AT_ONCE, limits.max_messages)
        self._most_bytes: Final = min(AT_ONCE_BYTES, limits.max_bytes)
        self._router: Final = router
        self._retained: Final = retained
        self._note: Final = note

    def begin(
        self, client: "Client", requested: str, walk: "Iterator[Message | None]", *, is_recorded: bool = False
    ) -> None:
        """The subscription gets these; a step of the walk without a message is one of the way. What it has still to get
        from a time before is among them. `is_recorded`: the session's record says that it gets them."""
        client.feeds.pop(requested, None)
        feed = Feed(walk)
        feed.look()
        if feed.is_through and not is_recorded:
            return  # as for most topic names
        feed.is_recorded = is_recorded
        if not client.feeds:
            client.feeds = {}  # the empty one is shared
        client.feeds[requested] = feed
        if client.connection is not None:
            client.connection.touched()

    def go_on(self, client: "Client", most: int = AT_ONCE, looks: int = LOOKS) -> bool:
        """Deliver so many more at most to a client that is connected, and look at so many topics. Whether it may take
        still more at once."""
        outbound = client.session.outbound
        if client.waits_in_log and client.offered < client.fed:
            return False  # the last ones are being stored
        room = min(most, self._most - outbound.messages)
        bytes_left = self._most_bytes - outbound.bytes
        delivered = is_full = False
        for requested, feed in list(client.feeds.items()):
            subscription = client.session.subscriptions.get(requested)
            while subscription is not None and not feed.is_through and looks > 0:
                looks -= 1
                feed.look()
                message = feed.next
                if message is None:
                    continue
                size = message_size(message)
                # One alone that is too large for the bounds is dropped by them.
                if room <= 0 or (size > bytes_left and (delivered or outbound.messages)):
                    is_full = True
                    break
                feed.next = None
                if message.topic.startswith("$SYS/") or self._retained.get(message.topic) is message:
                    self._router.deliver_retained(client, subscription, message)
                    delivered = True
                    room -= 1
                    bytes_left -= size
            if subscription is not None and not feed.is_through:
                break
            if not feed.is_recorded or subscription is None or not client.outlives:
                del client.feeds[requested]
            elif not delivered:  # the last ones are stored
                del client.feeds[requested]
                self._note(client)
        if delivered:
            client.fed = outbound.next_sequence
        return (delivered or not is_full) and bool(client.feeds)
