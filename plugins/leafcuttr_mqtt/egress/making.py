"""The ways down, as the settings say. The rest of the package is imported only where there are some."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from leafcuttr_mqtt.egress.follower import Egress
    from leafcuttr_mqtt.mapping.contracts import Writer
    from leafcuttr_mqtt.mapping.outcomes import Refusal
    from leafcuttr_mqtt.mapping.settings import MappingOptions
    from leafcuttr_mqtt.messages import Message
    from leafcuttr_mqtt.routing.hub import Hub
    from leafcuttr_mqtt.routing.turns import Turns
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.trouble import Complaints


def make_egress(
    broker: "Broker",
    mapping: "MappingOptions",
    turns: "Turns",
    writer: "Writer",
    hub: "Hub",
    count_refused: "Callable[[str], None]",
    complain: "Complaints",
) -> "Egress | None":
    """None where nothing of Kafka topics is published."""
    if not mapping.egress:
        return None
    from leafcuttr_mqtt.egress.follower import Egress
    from leafcuttr_mqtt.egress.messages import Way
    from leafcuttr_mqtt.egress.publication import Publisher

    ways = {
        kafka_topic: Way(template, mapping.egress_qos, mapping.egress_retain, mapping.rules)
        for kafka_topic, template in mapping.egress.items()
    }

    def refused(_: "Message", refusal: "Refusal") -> None:
        count_refused(refusal.text)

    def waits(reason: str) -> None:
        complain("egress", "records cannot be published to MQTT for now: %s", reason)

    return Egress(broker, ways, Publisher(turns, writer, hub, refused, waits), mapping.egress_filters)
