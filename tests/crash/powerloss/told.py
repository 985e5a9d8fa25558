"""What clients had sent, and what they had been told, when the power was cut: the marks before the cut.

Whoever has been told nothing yet may find either. What was promised for which setting is for `promises`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crash.powerloss.recording import Entry


@dataclass
class Partition:
    """Of one partition: `sent` values, with which key; `acked` offsets; `end` after the last of those."""

    sent: dict[str, str | None] = field(default_factory=dict)
    acked: dict[int, str] = field(default_factory=dict)
    end: int = 0
    low: int = 0  # DeleteRecords has been answered with this
    lowest: int = 0  # and asked for this


@dataclass
class Topic:
    """`there`: None while a request about it has no answer."""

    there: bool | None
    config: dict[str, str]
    partitions: list[Partition]
    settings: dict[str, set[str]] = field(default_factory=dict)  # what each may be

    @property
    def sync(self) -> bool:
        return self.config.get("lc.log.sync.always") == "true"


@dataclass
class Told:
    """All of it. `offsets` are, for a group, the last that was acknowledged and the last that was tried (-1: none);
    `ended` the transactions whose end was acknowledged, `ending` those where it had been asked for: committed or
    not."""

    topics: dict[str, Topic] = field(default_factory=dict)
    offsets: dict[str, tuple[int, int]] = field(default_factory=dict)
    ending: dict[int, bool] = field(default_factory=dict)
    ended: dict[int, bool] = field(default_factory=dict)
    producers: set[int] = field(default_factory=set)
    batches: dict[tuple[str, str], tuple[str, int]] = field(
        default_factory=dict
    )  # the last: hex, offset or -1

    @classmethod
    def by(cls, entries: Iterable[Entry]) -> Told:
        told = cls()
        for entry in entries:
            if entry.kind == "K":
                told.hear(entry.mark)
        return told

    def hear(self, mark: Mapping[str, Any]) -> None:
        """Take up one mark."""
        handler = getattr(self, f"_{mark['mark']}", None)
        if handler is not None:
            handler(mark)

    def _creating(self, mark: Mapping[str, Any]) -> None:
        partitions = [Partition() for _ in range(mark["partitions"])]
        self.topics[mark["topic"]] = Topic(None, dict(mark["config"]), partitions)

    def _created(self, mark: Mapping[str, Any]) -> None:
        self.topics[mark["topic"]].there = True

    def _deleting(self, mark: Mapping[str, Any]) -> None:
        self.topics[mark["topic"]].there = None

    def _deleted(self, mark: Mapping[str, Any]) -> None:
        self.topics[mark["topic"]].there = False

    def _setting(self, mark: Mapping[str, Any]) -> None:
        # "" stands for the broker's.
        self.topics[mark["topic"]].settings.setdefault(mark["setting"], {""}).add(mark["value"])

    def _set(self, mark: Mapping[str, Any]) -> None:
        self.topics[mark["topic"]].settings[mark["setting"]] = {mark["value"]}

    def _partition(self, mark: Mapping[str, Any]) -> Partition:
        return self.topics[mark["topic"]].partitions[mark.get("partition", 0)]

    def _sent(self, mark: Mapping[str, Any]) -> None:
        self._partition(mark).sent.update(dict.fromkeys(mark["values"], mark["key"]))
        if mark["batch"]:
            self.batches[mark["topic"], mark["sender"]] = mark["batch"], -1

    def _acked(self, mark: Mapping[str, Any]) -> None:
        partition = self._partition(mark)
        for offset, value in enumerate(mark["values"], mark["offset"]):
            partition.acked[offset] = value
            partition.end = max(partition.end, offset + 1)
        name = mark["topic"], mark["sender"]
        if name in self.batches:
            self.batches[name] = self.batches[name][0], mark["offset"]

    def _trimming(self, mark: Mapping[str, Any]) -> None:
        self._partition(mark).lowest = max(self._partition(mark).lowest, mark["offset"])

    def _trimmed(self, mark: Mapping[str, Any]) -> None:
        self._partition(mark).low = max(self._partition(mark).low, mark["offset"])

    def _committing(self, mark: Mapping[str, Any]) -> None:
        self.offsets[mark["group"]] = self.offsets.get(mark["group"], (-1, -1))[0], mark["offset"]

    def _committed(self, mark: Mapping[str, Any]) -> None:
        self.offsets[mark["group"]] = mark["offset"], mark["offset"]

    def _ending(self, mark: Mapping[str, Any]) -> None:
        self.ending[mark["number"]] = mark["commit"]

    def _ended(self, mark: Mapping[str, Any]) -> None:
        self.ended[mark["number"]] = mark["commit"]

    def _producer(self, mark: Mapping[str, Any]) -> None:
        self.producers.add(mark["id"])
