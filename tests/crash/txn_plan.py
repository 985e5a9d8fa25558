"""What the transactional clients of `test_transactions.py` do, so that the log can be compared with it: which topics
there are, and what each numbered transaction of each writer consists of. The clients are in `txn_client`, the
comparison in `txn_audit`.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

INPUT = "input"
PARTITIONS = 3

# What a journal says of a transaction, in this order: it was begun; its commit was asked for; how it ended, if the
# client heard that.
BEGUN, ASKED, COMMITTED, ABORTED = "begun", "asked", "committed", "aborted"


LIFE = 1_000_000  # more transactions than one process can begin


class Plan(NamedTuple):
    """One transaction of a writer: how many records go into which partition, how large they are, how it ends."""

    counts: dict[int, int]
    size: int
    commits: bool


def plan(seed: int, writer: str, number: int) -> Plan:
    """The same for the writer, which may be a new process, and for the audit."""
    chance = random.Random(f"{seed} {writer} {number}")
    partitions = chance.sample(range(PARTITIONS), chance.randint(1, PARTITIONS))
    counts = {partition: chance.randint(1, 6) for partition in sorted(partitions)}
    return Plan(counts, chance.choice((20, 100, 700)), chance.random() < 0.75)


def value_of(writer: str, number: int, index: int, size: int) -> bytes:
    return f"{writer}:{number}:{index}:".encode().ljust(size, b"x")


def copy_of(partition: int, offset: int, value: bytes) -> bytes:
    """What a copier makes of a record of the input topic."""
    return f"{partition}:{offset}:".encode() + value


class Journal:
    """What one client has done, over all its lives, and where its records are by the broker's word. A process that is
    killed leaves what it has written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._told = path.with_suffix(".told")

    def note_place(self, number: int, partition: int, index: int, offset: int) -> None:
        """A record of a transaction was acknowledged: one of a writer by its index, of a copier by the offset of what
        is copied."""
        with self._told.open("ab", buffering=0) as file:
            file.write(f"{number} {partition} {index} {offset}\n".encode())

    def places(self) -> list[tuple[int, int, int, int]]:
        """What `note_place` was told, in that order."""
        if not self._told.exists():
            return []
        lines = self._told.read_bytes().split(b"\n")[:-1]
        found = []
        for line in lines:
            number, partition, index, offset = map(int, line.split())
            found.append((number, partition, index, offset))
        return found

    def note(self, word: str, number: int) -> None:
        with self.path.open("ab", buffering=0) as file:
            file.write(f"{word} {number}\n".encode())

    def transactions(self) -> dict[int, str]:
        """The last word on each transaction, in the order in which they were begun."""
        found: dict[int, str] = {}
        if self.path.exists():
            # A kill may have come within a write: what has no end of line was not said.
            for line in self.path.read_bytes().split(b"\n")[:-1]:
                word, number = line.decode().split()
                found[int(number)] = word
        return found

    def committed(self) -> list[int]:
        """The transactions that were acknowledged as committed."""
        return [number for number, word in self.transactions().items() if word == COMMITTED]

    def first_of_a_life(self) -> int:
        """Where the next process begins to count. An earlier one that lives on, as a zombie, counts on below."""
        return (max(self.transactions(), default=-1) // LIFE + 1) * LIFE

    def count(self, word: str) -> int:
        return sum(found == word for found in self.transactions().values())
