"""Retained messages on their way to new subscriptions, in pace with what a client takes: some hundred at a time, so
that no bound of its session is reached by them, however many there are.

A feed belongs to the session: it goes on when the client is back. Which subscriptions still have some to come is in the
record of the session; after a restart of the broker those are sent all that match, from the beginning. Live messages
are delivered meanwhile; one that has replaced a retained message stands for it.
"""

from collections.abc import Callable
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

    def begin(self, client: "Client", requested: str, messages: "list[Message]") -> None:
        """The subscription gets these. What it has still to get from a time before is among them."""
        client.feeds.pop(requested, None)
        if messages:
            if not client.feeds:
                client.feeds = {}  # the empty one is shared
            client.feeds[requested] = Feed(messages)
            if client.connection is not None:
                client.connection.touched()

    def go_on(self, client: "Client", most: int = AT_ONCE) -> bool:
        """Deliver so many more at most to a client that is connected. Whether it may take still more at once."""
        outbound = client.session.outbound
        if client.waits_in_log and client.offered < client.fed:
            return False  # the last ones are being stored
        room = min(most, self._most - outbound.messages)
        bytes_left = self._most_bytes - outbound.bytes
        delivered = False
        for requested, feed in list(client.feeds.items()):
            subscription = client.session.subscriptions.get(requested)
            messages = feed.messages
            while messages and subscription is not None:
                message = messages[-1]
                size = message_size(message)
                # One alone that is too large for the bounds is dropped by them.
                if room <= 0 or (size > bytes_left and (delivered or outbound.messages)):
                    break
                messages.pop()
                if message.topic.startswith("$SYS/") or self._retained.get(message.topic) is message:
                    self._router.deliver_retained(client, subscription, message)
                    delivered = True
                    room -= 1
                    bytes_left -= size
            else:
                if not feed.has_begun or subscription is None or not client.outlives:
                    del client.feeds[requested]
                elif not delivered:  # the last ones are stored
                    del client.feeds[requested]
                    self._note(client)
                continue
            break
        client.fed = outbound.next_sequence
        for feed in client.feeds.values():
            feed.has_begun = True
        return delivered and bool(client.feeds)
