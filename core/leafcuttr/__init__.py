"""LeafCuttr: a Kafka-compatible event broker in one process.

Importing this package does no work; the broker starts in `leafcuttr.server`.
"""

__version__ = "0.6.0"
