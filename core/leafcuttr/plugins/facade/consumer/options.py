"""The options of `leafcuttr_sdk.Broker.consumer`, as one object from there to the parts that act on them."""

from dataclasses import dataclass
from typing import Final

from leafcuttr.state.identity import ClientIdentity

RESETS: Final = ("earliest", "latest", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    """What a consumer is from its beginning to its end; what it reads may change. `client` is the plugin, with the
    client id of this consumer. `committed` leaves out records of aborted transactions.
    """

    group: str
    client: ClientIdentity
    auto_offset_reset: str
    session_timeout_ms: int
    max_poll_interval_ms: int
    instance_id: str | None
    committed: bool

    def check(self) -> None:
        """Raises ValueError. Whether a session may be this short or long is the coordinator's business."""
        if self.auto_offset_reset not in RESETS:
            raise ValueError(
                f"auto_offset_reset is one of {', '.join(RESETS)}, not {self.auto_offset_reset!r}."
            )
        if self.max_poll_interval_ms < 1:
            raise ValueError("max_poll_interval_ms is at least 1.")
