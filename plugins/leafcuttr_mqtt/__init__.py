"""An MQTT broker, 3.1.1 and 5.0, that stores chosen MQTT topics in Kafka topics.

This module is imported at every start, also where the broker is off: it says what there is and imports nothing heavy.

    `packets`   bytes and packets, no I/O
    `topics`    topic names and filters, the tree of subscriptions
    `session`   the state of a session, no I/O
    `mapping`   which messages go to which Kafka topics, and as what records
    `storage`   sessions, queues, retained messages and wills in internal topics
"""

from typing import Final

from leafcuttr_sdk.plugin import Plugin

PLUGIN: Final = Plugin(
    name="mqtt",
    api_version=1,
    summary="An MQTT broker, 3.1.1 and 5.0, whose messages are stored in Kafka topics",
    enabled_by="lc.mqtt.broker.enable",
    extra="mqtt",
    modules=("trio_websocket",),
)
