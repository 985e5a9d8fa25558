"""The offsets that `groups reset-offsets` would set: one function for all its modes. It changes nothing."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.librdkafka.admin import Admin
from leafcuttr_sdk.types import TopicPartition


@dataclass(frozen=True)
class Mode:
    """How new offsets are found: the option's name without dashes, and its value."""

    name: str
    value: Any = None


def new_offsets(
    admin: Admin,
    mode: Mode,
    partitions: Sequence[TopicPartition],
    committed: dict[TopicPartition, int],
    warn: Callable[[str], None],
) -> dict[TopicPartition, int]:
    """For each partition the new offset, within what the partition holds.

    `committed` is what the group has now; `warn` is called for an offset that is moved into the range of the partition.
    Raises Failure if a partition does not exist, or has no committed offset to shift.
    """
    from confluent_kafka.admin import OffsetSpec

    def offsets(spec: Any) -> dict[TopicPartition, int]:
        return {tp: found.offset for tp, found in admin.offsets(partitions, spec).items()}

    if mode.name == "to-earliest":
        return offsets(OffsetSpec.earliest())
    last = offsets(OffsetSpec.latest())
    if mode.name == "to-latest":
        return last
    if mode.name == "to-current":
        return {tp: committed.get(tp, last[tp]) for tp in partitions}
    if mode.name in ("to-datetime", "by-duration"):
        moment = mode.value if mode.name == "to-datetime" else int(time.time() * 1000) - mode.value
        found = offsets(OffsetSpec.for_timestamp(max(moment, 0)))
        # No record is that new: the group starts at the end.
        return {tp: found[tp] if found[tp] >= 0 else last[tp] for tp in partitions}
    wanted: dict[TopicPartition, int]
    if mode.name == "shift-by":
        missing = [str(tp) for tp in partitions if tp not in committed]
        if missing:
            raise Failure(f"no committed offset to shift for {', '.join(missing[:5])}")
        wanted = {tp: committed[tp] + mode.value for tp in partitions}
    elif mode.name == "to-offset":
        offset: int = mode.value
        wanted = dict.fromkeys(partitions, offset)
    else:
        wanted = {tp: mode.value[tp] for tp in partitions}
    return _within(wanted, offsets(OffsetSpec.earliest()), last, warn)


def _within(
    wanted: dict[TopicPartition, int],
    first: dict[TopicPartition, int],
    last: dict[TopicPartition, int],
    warn: Callable[[str], None],
) -> dict[TopicPartition, int]:
    found = {}
    for tp, offset in wanted.items():
        found[tp] = min(max(offset, first[tp]), last[tp])
        if found[tp] != offset:
            side = "before the first offset" if offset < first[tp] else "beyond the end"
            warn(f"{tp}: {offset} is {side}, {found[tp]} is used")
    return found
