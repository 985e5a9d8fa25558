"""The producer state of a partition and its snapshots."""
