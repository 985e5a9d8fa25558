"""Which topics a client may publish to: those that begin with `$` are the broker's (4.7.2), but for one in which a
bridge, of this broker or of another, says whether it is connected."""

from typing import Final

from leafcuttr_mqtt.bridge.topics import state_topic
from leafcuttr_mqtt.packets.types import ReasonCode
from leafcuttr_mqtt.topics.names import why_too_deep

PROTECTED: Final = "topics that begin with $ are the broker's own"


def why_refused(topic: str, client_id: str) -> tuple[ReasonCode, str] | None:
    """Why a client may not publish to a valid topic name: to one that begins with `$`, or has too many levels."""
    if wrong := why_too_deep(topic):
        return ReasonCode.TOPIC_NAME_INVALID, f"topic name: {wrong}"
    if topic[0] == "$" and topic != state_topic(client_id):
        return ReasonCode.NOT_AUTHORIZED, PROTECTED
    return None
