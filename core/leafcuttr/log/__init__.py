"""Partitions on disk, in Kafka's layout: segments, indexes, recovery, checkpoints, retention."""
