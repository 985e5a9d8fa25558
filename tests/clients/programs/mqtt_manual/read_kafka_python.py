"""Prints the first COUNT records of TOPIC as JSON, a line each, by kafka-python: ADDRESS TOPIC COUNT."""

import json
import sys

from kafka import KafkaConsumer

address, topic, count = sys.argv[1:]
consumer = KafkaConsumer(
    topic, bootstrap_servers=address, auto_offset_reset="earliest", consumer_timeout_ms=60_000
)
for _ in range(int(count)):
    record = next(consumer)
    headers = [[name, value.decode()] for name, value in record.headers]
    print(json.dumps({"key": record.key.decode(), "value": record.value.decode(), "headers": headers}))
consumer.close()
