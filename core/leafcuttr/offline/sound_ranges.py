"""The runs of sound batches in a log file that may be damaged anywhere."""

import os
from pathlib import Path
from typing import NamedTuple

from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.segment.scan import DamagedSegmentError
from leafcuttr.offline.placing import Placed, Placing, placed
from leafcuttr.offline.verify_segment import Holder, resume_after


class SoundRange(NamedTuple):
    """A run of sound batches: bytes, and the offsets it covers."""

    start: int
    end: int
    first_offset: int
    next_offset: int
    leader_epoch: int


def sound_ranges(
    log: Path,
    base_offset: int,
    *,
    check_crc: bool = True,
    placing: Placing | None = None,
    displaced: list[Placed] | None = None,
) -> list[SoundRange]:
    """The runs of sound batches in a log file, in order, as they are when those that join `displaced` have been given
    their base offsets back. Raises OSError."""
    file = OpenFile(str(log), os.O_RDONLY, Holder())
    end = os.fstat(file.fd).st_size
    ranges: list[SoundRange] = []
    position, expected, after_damage = 0, base_offset, False
    while position < end:
        start, first, reached, epoch = position, expected, position, -1
        try:
            walked = placed(
                file, position, end, expected, placing or Placing(),
                after_damage=after_damage, check_crc=check_crc,
            )  # fmt: skip
            for at, header, claimed in walked:
                if claimed != header.base_offset and displaced is not None:
                    displaced.append(Placed(at, header, claimed))
                first = header.base_offset if at == start else first
                reached, expected, epoch = at + header.size, header.next_offset, header.leader_epoch
            position = end
        except DamagedSegmentError as error:
            position, after_damage = resume_after(file, error.position, end, base_offset), True
        if reached > start:
            ranges.append(SoundRange(start, reached, first, expected, epoch))
    return ranges
