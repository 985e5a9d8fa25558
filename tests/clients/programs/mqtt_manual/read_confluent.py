"""Prints the first COUNT records of TOPIC as JSON, a line each, by confluent-kafka: ADDRESS TOPIC COUNT."""

import json
import sys

from confluent_kafka import Consumer

address, topic, count = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": address, "group.id": "manual", "auto.offset.reset": "earliest"})
consumer.subscribe([topic])
for _ in range(int(count)):
    record = consumer.poll(60)
    assert record is not None, "nothing within 60 s"
    assert record.error() is None, record.error()
    headers = [[name, value.decode()] for name, value in record.headers()]
    print(json.dumps({"key": record.key().decode(), "value": record.value().decode(), "headers": headers}))
consumer.close()
