"""What `$SYS` needs of the broker that runs, which imports it."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leafcuttr_mqtt.people.counts import Counts, Survey
    from leafcuttr_mqtt.routing.hub import Hub
    from leafcuttr_mqtt.routing.turns import Turns
    from leafcuttr_mqtt.storage.store import Store
    from leafcuttr_sdk.broker import Broker


class Observed(Protocol):
    seen: "Survey"
    """What all sessions had together at the last survey."""

    @property
    def broker(self) -> "Broker": ...

    @property
    def hub(self) -> "Hub": ...

    @property
    def turns(self) -> "Turns": ...

    @property
    def store(self) -> "Store": ...

    @property
    def counts(self) -> "Counts": ...

    @property
    def started_ms(self) -> int: ...

    def now_ms(self) -> int: ...
