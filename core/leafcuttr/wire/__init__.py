"""Kafka's bytes: primitives, record batches, messages, framing. No I/O, and nothing of the broker."""
