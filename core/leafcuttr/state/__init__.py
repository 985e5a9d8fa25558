"""What the broker knows: topics, partitions, groups, producer ids, fetch sessions. No sockets, no Kafka messages."""
