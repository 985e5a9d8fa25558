"""What the log says of messages that sessions give up although nobody has asked for it: their queue is full, or the log
has lost them. One line a minute, about, for a client; the metrics have all of them."""

import logging
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.session.types import Drop, DropReason
from leafcuttr_mqtt.storage.topics import QUEUE
from leafcuttr_sdk.trouble import Complaints

if TYPE_CHECKING:
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.session.limits import QueueLimits

_KEYS: Final = 64
"""Clients share these many, so that the log stays small where thousands of clients are slow: not each is named then."""


class DropLog:
    """See the module."""

    def __init__(self, limits: "QueueLimits", logger: logging.Logger) -> None:
        self._limits = limits
        self._complain = Complaints(logger)

    def tell(self, client: "Client", drop: Drop) -> None:
        """A delivery was given up. Called for each, so it does little."""
        reason, client_id = drop.reason, client.client_id
        if reason is DropReason.QUEUE_FULL:
            limits = self._limits
            # What waits still is as many as may, if that was the limit.
            by_number = (
                client.session.outbound.messages >= limits.max_messages
                and drop.delivery.size <= limits.max_bytes
            )
            self._complain(
                f"full {hash(client_id) % _KEYS}",
                "messages for client %.255r are dropped, the oldest first: its queue is full (%s=%d)",
                client_id,
                "mqtt.session.max.messages" if by_number else "mqtt.session.max.bytes",
                limits.max_messages if by_number else limits.max_bytes,
                level=logging.WARNING,
            )
        elif reason is DropReason.LOST:
            self._complain(
                f"lost {hash(client_id) % _KEYS}",
                "messages for client %.255r are dropped: %s has them no more, retention has deleted them",
                client_id,
                QUEUE.topic,
                level=logging.WARNING,
            )
