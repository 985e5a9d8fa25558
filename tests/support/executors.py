"""What a test has other processes do with blocking peers, as executors of Spark do: functions that are sent by name."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping

from leafcuttr_sdk.blocking_peers import SharedTransaction, open_peer
from leafcuttr_sdk.types import TopicPartition


def write(
    properties: Mapping[str, str], shared: SharedTransaction, partition: TopicPartition, values: list[bytes]
) -> tuple[dict[TopicPartition, int], list[str]]:
    """How many records each partition got, and what of the broker was imported for it."""
    from support.remote_peers import new_batch

    with open_peer(properties, strict=True) as peer, peer.join(shared) as appender:
        for value in values:
            appender.send([new_batch(partition, value)])
        counts = appender.flush()
    heavy = (
        "click",
        "leafcuttr.cli",
        "leafcuttr.plugins",
        "leafcuttr.server",
        "leafcuttr.handlers",
        "leafcuttr.log",
    )
    assert threading.active_count() == 1, threading.enumerate()
    return counts, [name for name in heavy if name in sys.modules]
