"""What plugin authors import: types and contracts. It never imports the broker."""

from leafcuttr_sdk.types import Clock, TopicPartition

__all__ = ["Clock", "TopicPartition"]
