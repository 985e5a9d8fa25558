"""Tags that stand in a schema itself, as Confluent's registry puts them there. Each format says what can be tagged, and
where its tags are; a place is a record or a field, by Confluent's paths. Tags of metadata are in `subjects.metadata`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

from leafcuttr_sdk.schemas import SchemaError

RECORD: Final = "sr_record"
FIELD: Final = "sr_field"
KINDS: Final = (RECORD, FIELD)
MEMBER: Final = "confluent:tags"
"""What schemas that are JSON call it."""

Kind: TypeAlias = Literal["sr_record", "sr_field"]
TaggedPlace: TypeAlias = tuple[Kind, str]
Tags: TypeAlias = Mapping[TaggedPlace, Sequence[str]]


@runtime_checkable
class Tagged(Protocol):
    """A parsed schema whose format knows tags."""

    def places(self) -> Collection[TaggedPlace]:
        """What can be tagged."""
        ...

    def tags(self) -> dict[TaggedPlace, list[str]]:
        """What is tagged, in the order of the schema."""
        ...

    def with_tags(self, added: Tags, removed: Tags) -> str:
        """The text with these tags. Raises SchemaError for a place that is not there."""
        ...


def tags_of(places: Iterable[tuple[TaggedPlace, Mapping[str, Any]]]) -> dict[TaggedPlace, list[str]]:
    """Those of the parts of a schema that are JSON."""
    return {place: known for place, node in places if (known := _known(node))}


def change(places: Mapping[TaggedPlace, dict[str, Any]], added: Tags, removed: Tags) -> None:
    """Change them in these parts of a schema. Raises SchemaError for a place that is not there."""
    for place, tags in changes(places, added, removed, lambda place: _known(places[place])):
        places[place].pop(MEMBER, None)
        if tags:
            places[place][MEMBER] = tags


def changes(
    places: Iterable[TaggedPlace], added: Tags, removed: Tags, known: Callable[[TaggedPlace], Iterable[str]]
) -> Iterator[tuple[TaggedPlace, list[str]]]:
    """The tags that places have afterwards: those that they have by `known`, with what is added, without what is
    removed. Raises SchemaError for a place that is not there."""
    there = frozenset(places)
    for place in dict.fromkeys((*added, *removed)):
        if place not in there:
            raise SchemaError(f"No matching path '{place[1]}' found in the schema")
        gone = removed.get(place, ())
        tags = dict.fromkeys((*known(place), *added.get(place, ())))
        yield place, [tag for tag in tags if tag not in gone]


def _known(node: Mapping[str, Any]) -> list[str]:
    found = node.get(MEMBER)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
