"""What becomes of fields and oneofs from one message to another: which came, went, or moved into or out of a oneof."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from leafcuttr_registry.protobuf.members import Member


class Change(NamedTuple):
    type: str
    path: str
    """Below the message."""
    old: str | None
    new: str | None


def compare_oneofs(old: Mapping[int, Member], new: Mapping[int, Member]) -> Iterator[Change]:
    """`old` and `new`: the fields by number."""
    old_oneofs, new_oneofs = _oneofs(old), _oneofs(new)
    yield from _exclusive(old, new_oneofs)
    for name in sorted(old_oneofs.keys() | new_oneofs.keys()):
        if name not in new_oneofs:
            yield Change("ONEOF_REMOVED", name, name, None)
        elif name not in old_oneofs:
            yield Change("ONEOF_ADDED", name, None, name)
    # A oneof that is gone with all of its fields is a whole that was deleted, like a field outside of oneofs.
    gone = {
        name
        for name, numbers in old_oneofs.items()
        if name not in new_oneofs and not any(number in new for number in numbers)
    }
    for number in sorted(old.keys() | new.keys()):
        before, after = old.get(number), new.get(number)
        if after is None and before is not None:
            if before.oneof is None:
                type_ = "REQUIRED_FIELD_REMOVED" if before.required else "FIELD_REMOVED"
                yield Change(type_, str(number), before.name, None)
            elif before.oneof not in gone:
                yield Change("ONEOF_FIELD_REMOVED", f"{before.oneof}/{number}", before.name, None)
        elif before is None and after is not None:
            if after.oneof is not None:
                yield Change("ONEOF_FIELD_ADDED", f"{after.oneof}/{number}", None, after.name)
            else:
                type_ = "REQUIRED_FIELD_ADDED" if after.required else "FIELD_ADDED"
                yield Change(type_, str(number), None, after.name)
        elif before is not None and after is not None and before.oneof is not None and after.oneof is None:
            yield Change("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", str(number), before.oneof, None)


def _oneofs(members: Mapping[int, Member]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, member in members.items():
        if member.oneof is not None:
            found.setdefault(member.oneof, []).append(number)
    return found


def _exclusive(old: Mapping[int, Member], new_oneofs: dict[str, list[int]]) -> Iterator[Change]:
    """Fields that could be set together and exclude one another now: the writer's data may have several."""
    for name, numbers in new_oneofs.items():
        origins: set[str] = set()
        alone = 0
        names: list[str] = []
        for number in numbers:
            member = old.get(number)
            if member is None:
                continue
            names.append(member.name)
            if member.oneof is not None:
                origins.add(f"oneof {member.oneof}")
            else:
                origins.add(f"field {number}")
                alone += 1
        if len(origins) > 1:
            type_ = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if alone > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
            yield Change(type_, name, ", ".join(names[:5]), name)
