"""From MQTT topics to Kafka topics: which messages are stored where, and as what records."""
