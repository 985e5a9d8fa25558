"""Partitions on the command line: `orders`, `orders:0`, `orders:0,2`, and what that means on a broker."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import click

from leafcuttr.cli.common.completion import complete_topics
from leafcuttr.cli.common.failures import Failure
from leafcuttr_sdk.types import TopicPartition

F = TypeVar("F", bound=Callable[..., None])


class Selection(NamedTuple):
    """What one word of the command line selects: some partitions of a topic, or all (None)."""

    topic: str
    partitions: tuple[int, ...] | None


def selection(text: str) -> Selection:
    """An argument's type: `TOPIC` or `TOPIC:P,P`. Raises BadParameter."""
    topic, colon, numbers = text.rpartition(":")
    if not colon:
        return Selection(text, None)
    parts = numbers.split(",")
    if not topic or not all(part.isascii() and part.isdigit() for part in parts):
        raise click.BadParameter(f"{text!r}: expected TOPIC or TOPIC:P,P with the numbers of partitions")
    return Selection(topic, tuple(dict.fromkeys(map(int, parts))))


def select(selections: Iterable[Selection], known: Mapping[str, Sequence[int]]) -> list[TopicPartition]:
    """The selected partitions in order, each once. Raises Failure for one that the broker does not have."""
    found: dict[TopicPartition, None] = {}
    for topic, wanted in selections:
        if topic not in known:
            raise Failure(f"there is no topic {topic}")
        for partition in known[topic] if wanted is None else wanted:
            if partition not in known[topic]:
                raise Failure(f"{topic} has no partition {partition}")
            found[TopicPartition(topic, partition)] = None
    return list(found)


def by_topic(wanted: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The same partitions, by topic."""
    topics: dict[str, list[int]] = {}
    for topic, partition in wanted:
        topics.setdefault(topic, []).append(partition)
    return topics


def partitions_argument(*, required: bool = False) -> Callable[[F], F]:
    """The words of a command that name partitions, as the argument `topics`, a tuple of Selections."""
    return click.argument(
        "topics",
        nargs=-1,
        required=required,
        type=selection,
        metavar="TOPIC[:P,P]..." if required else "[TOPIC[:P,P]]...",
        shell_complete=complete_topics,
    )
