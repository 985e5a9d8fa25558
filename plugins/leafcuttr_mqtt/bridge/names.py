"""What settings of bridges are called: `mqtt.bridge.<name>.<option>`."""

from typing import Final

BRIDGE: Final = "mqtt.bridge.<name and option>"
PREFIX: Final = "mqtt.bridge."
OPTION_NAMES: Final = (
    "address",
    "topics",
    "protocol.version",
    "client.id",
    "username",
    "password",
    "clean.session",
    "keep.alive.ms",
    "max.inflight",
    "try.private",
    "notifications",
    "notifications.local.only",
    "notification.topic",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "security.protocol",
    "ssl.truststore.location",
    "ssl.keystore.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
)
"""All of them. How each is read: `options.OPTIONS`."""


def split(place: str) -> tuple[str, str] | None:
    """The bridge's name and the option; None: there is no such option."""
    for option in sorted(OPTION_NAMES, key=len, reverse=True):  # `ssl.key.password` before `password`
        name = place.removesuffix(f".{option}")
        if name != place and name:
            return name, option
    return None
