"""The CSV of `groups reset-offsets`: what `--export` writes and `--from-file` reads, as Kafka's own tool has it.

`topic,partition,offset` where one group is meant, `group,topic,partition,offset` where several are; no header.
"""

import csv
import io
from collections.abc import Sequence

from leafcuttr.cli.common.failures import Failure
from leafcuttr_sdk.types import TopicPartition

OffsetPlan = dict[str, dict[TopicPartition, int]]
"""For each group the offset that each partition shall get."""

_MOST = (1 << 63) - 1


def write(plan: OffsetPlan, several: bool) -> str:
    """The lines; with the group in each if `several`."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    for group, offsets in plan.items():
        for tp, offset in offsets.items():
            row = [tp.topic, tp.partition, offset]
            lines.writerow([group, *row] if several else row)
    return out.getvalue()


def read(text: str, name: str, groups: Sequence[str]) -> OffsetPlan:
    """The plan for these groups; of a file without groups all lines are for the one. Raises Failure with the line."""
    plan: OffsetPlan = {group: {} for group in groups}
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if not row:
            continue
        where = f"{name}, line {number}"
        if len(row) == 3 and len(groups) == 1:
            row = [groups[0], *row]
        if len(row) != 4:
            shape = "TOPIC,PARTITION,OFFSET or GROUP,TOPIC,PARTITION,OFFSET"
            raise Failure(
                f"{where}: expected {shape if len(groups) == 1 else 'GROUP,TOPIC,PARTITION,OFFSET'}"
            )
        group, topic, partition, offset = (cell.strip() for cell in row)
        if not (partition.isascii() and partition.isdigit() and offset.isascii() and offset.isdigit()):
            raise Failure(f"{where}: partition and offset have to be numbers from 0 on")
        if int(offset) > _MOST or int(partition) >= 1 << 31:
            raise Failure(f"{where}: a partition or an offset is out of range")
        if group not in plan:
            continue
        tp = TopicPartition(topic, int(partition))
        if tp in plan[group]:
            raise Failure(f"{where}: {tp} of {group} is there twice")
        plan[group][tp] = int(offset)
    return plan
