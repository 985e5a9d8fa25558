"""The records of Kafka's internal topics, declared like messages. Each key and value begins with an int16, its
version, which is not part of the declaration."""
