"""The limits of a listener that is served: `leafcuttr_sdk.serving_settings`, in seconds."""

from typing import NamedTuple

from leafcuttr_sdk.settings import Settings


class Limits(NamedTuple):
    """Of one listener. `idle_s` of 0: without limit."""

    handshake_s: float
    idle_s: float
    send_s: float


def limits_of(settings: Settings, prefix: str) -> Limits:
    """Raises KeyError where the plugin has not declared them."""
    return Limits(
        settings.int(f"{prefix}.handshake.timeout.ms") / 1000,
        settings.int(f"{prefix}.idle.timeout.ms") / 1000,
        settings.int(f"{prefix}.send.timeout.ms") / 1000,
    )
