"""The offsets that `groups reset-offsets` would set: one function for all its modes. Nothing is changed here."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leafcuttr.cli.admin import Admin
from leafcuttr.cli.failures import Failure
from leafcuttr.cli.partitions import Place


@dataclass(frozen=True)
class Mode:
    """How new offsets are found: the option's name without dashes, and its value."""

    name: str
    value: Any = None


def new_offsets(
    admin: Admin,
    mode: Mode,
    places: Sequence[Place],
    committed: dict[Place, int],
    warn: Callable[[str], None],
) -> dict[Place, int]:
    """For each partition the new offset, within what the partition holds.

    `committed` is what the group has now; `warn` hears of an offset that had to be moved into the partition's range.
    Raises Failure if a partition does not exist, or has no committed offset to shift.
    """
    from confluent_kafka.admin import OffsetSpec

    def offsets(spec: Any) -> dict[Place, int]:
        return {place: found.offset for place, found in admin.offsets(places, spec).items()}

    if mode.name == "to-earliest":
        return offsets(OffsetSpec.earliest())
    last = offsets(OffsetSpec.latest())
    if mode.name == "to-latest":
        return last
    if mode.name == "to-current":
        return {place: committed.get(place, last[place]) for place in places}
    if mode.name in ("to-datetime", "by-duration"):
        moment = mode.value if mode.name == "to-datetime" else int(time.time() * 1000) - mode.value
        found = offsets(OffsetSpec.for_timestamp(max(moment, 0)))
        # Nothing is that young: the group goes on at the end.
        return {place: found[place] if found[place] >= 0 else last[place] for place in places}
    wanted: dict[Place, int]
    if mode.name == "shift-by":
        missing = [str(place) for place in places if place not in committed]
        if missing:
            raise Failure(f"no committed offset to shift for {', '.join(missing[:5])}")
        wanted = {place: committed[place] + mode.value for place in places}
    elif mode.name == "to-offset":
        offset: int = mode.value
        wanted = dict.fromkeys(places, offset)
    else:
        wanted = {place: mode.value[place] for place in places}
    return _within(wanted, offsets(OffsetSpec.earliest()), last, warn)


def _within(
    wanted: dict[Place, int], first: dict[Place, int], last: dict[Place, int], warn: Callable[[str], None]
) -> dict[Place, int]:
    found = {}
    for place, offset in wanted.items():
        found[place] = min(max(offset, first[place]), last[place])
        if found[place] != offset:
            side = "before the first offset" if offset < first[place] else "beyond the end"
            warn(f"{place}: {offset} lies {side}, {found[place]} is taken")
    return found
