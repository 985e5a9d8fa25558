"""The router where the broker has an authorizer: what a client may not have is not given to its session."""

from functools import partial
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.routing.rights import Publishing, Rights, Who
from leafcuttr_mqtt.routing.router import RECEIVER_BYTES, Receiver, Router
from leafcuttr_mqtt.topics.tree import Group

if TYPE_CHECKING:
    from collections.abc import Callable

    from leafcuttr_mqtt.messages import Message
    from leafcuttr_mqtt.packets.frames import PublishFrames
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.session.types import Delivery, Drop, Subscription
    from leafcuttr_mqtt.topics.tree import Matched


class GuardedRouter(Router):
    """A router that gives messages to sessions whose clients may have them. Who that is belongs to what is planned for
    a topic. A session whose client is not known is that of a bridge, or of a time before rights were asked for: what
    waits in it is checked when it is sent."""

    def __init__(
        self,
        rights: Rights,
        journal: "Callable[[Message, Client, Delivery], None] | None",
        dropped: "Callable[[Client, Drop], None]",
    ) -> None:
        super().__init__(journal, dropped)
        self._rights: Final = rights
        self._version = rights.version

    def identify(self, client: "Client", who: Who) -> None:
        """Who the client of a session is from now on."""
        client.session.outbound.may_receive = self._rights.receives(who)
        client.publishing = Publishing(self._rights, who)
        if client.who != who:
            client.who = who
            if client.session.subscriptions:
                self._plans.clear()

    def deliver(
        self, client: "Client", subscription: "Subscription", message: "Message", retain: bool
    ) -> None:
        if self._gets(client, message.topic):
            super().deliver(client, subscription, message, retain)

    def _share(
        self, group: "Group[Client, Subscription]", message: "Message", frames: "PublishFrames"
    ) -> int:
        gets = partial(self._gets, topic=message.topic)
        members = {client: each for client, each in group.members.items() if gets(client)}
        if len(members) != len(group.members):
            if not members:
                return 0
            allowed: Group[Client, Subscription] = Group(group.share, group.filter)
            allowed.members = members
            group = allowed
        return super()._share(group, message, frames)

    def _plan(self, topic: str, matched: "Matched[Client, Subscription]") -> tuple[Receiver, ...]:
        if self._version != self._rights.version:
            self._version = self._rights.version
            self._plans.clear()
        known = self._plans.recent.get(topic) or self._plans.get(topic)
        if known is not None and known[0] is matched:
            return known[1]
        plan = tuple([each for each in self._planned(matched) if self._gets(each.client, topic)])
        self._plans.put(topic, (matched, plan), (1 + len(plan)) * RECEIVER_BYTES)
        return plan

    def _gets(self, client: "Client", topic: str) -> bool:
        who = client.who
        return who is None or self._rights.may_receive(who, topic)
