"""A session: what the server keeps of a client, also while it is not connected (4.1)."""

from leafcuttr_mqtt.packets.types import Will
from leafcuttr_mqtt.session.inbound import Inbound
from leafcuttr_mqtt.session.limits import NEVER_S, ClientLimits, QueueLimits
from leafcuttr_mqtt.session.outbound import Outbound
from leafcuttr_mqtt.session.types import Subscription


class Session:
    """Subscriptions are by their filter as it was sent, `$share/<name>/` included. Routing has them too, by topic: both
    are changed together."""

    __slots__ = ("client_id", "disconnected_ms", "expiry_s", "inbound", "outbound", "subscriptions", "will")

    def __init__(self, client_id: str, limits: QueueLimits) -> None:
        self.client_id = client_id
        self.expiry_s = 0
        """How long it outlives its connection; `NEVER_S`: for ever."""
        self.disconnected_ms: int | None = None
        """When its connection ended; None: it is connected, or was never."""
        self.subscriptions: dict[str, Subscription] = {}
        self.will: Will | None = None
        """That of the connection, or one whose delay is not over."""
        self.inbound = Inbound()
        self.outbound = Outbound(limits)

    @property
    def connected(self) -> bool:
        return self.outbound.connected

    @property
    def ends_ms(self) -> int | None:
        """When it ends; None: not while it is connected, or never."""
        if self.disconnected_ms is None or self.expiry_s == NEVER_S:
            return None
        return self.disconnected_ms + self.expiry_s * 1000

    @property
    def will_due_ms(self) -> int | None:
        """When its will is published: after its delay, or when the session ends if that is sooner (3.1.3.2.2); None:
        there is none, or the client is connected."""
        if self.will is None or self.disconnected_ms is None:
            return None
        due = self.disconnected_ms + (self.will.properties.will_delay_interval or 0) * 1000
        ends = self.ends_ms
        return due if ends is None else min(due, ends)

    def connect(
        self, client: ClientLimits, *, expiry_s: int, will: Will | None, receive_maximum: int | None
    ) -> list[int]:
        """A connection has been accepted; what `Outbound.connect` says."""
        self.disconnected_ms = None
        self.expiry_s = expiry_s
        self.will = will
        self.inbound.connect(receive_maximum)
        return self.outbound.connect(client)

    def disconnect(self, now_ms: int) -> None:
        """Its connection has ended, with or without DISCONNECT."""
        self.disconnected_ms = now_ms
        self.outbound.disconnect()


def filter_of(subscription: Subscription) -> str:
    """The filter as the client has sent it."""
    if subscription.share is None:
        return subscription.filter
    return f"$share/{subscription.share}/{subscription.filter}"
