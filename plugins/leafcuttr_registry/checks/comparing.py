"""Why a schema is not compatible with the versions before it, as messages in the form of Confluent's registry: its
client tools show them as they are.

A transitive level may ask for thousands of versions. All are compared within the time of one check; what was found
compatible is remembered, so that a request which was refused for its time goes on where it was when it comes again.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import trio

from leafcuttr_registry.checks.levels import asked_for, directions
from leafcuttr_registry.checks.reading import Checks
from leafcuttr_registry.checks.turns import PATIENCE, Limit
from leafcuttr_registry.checks.work import Source
from leafcuttr_registry.subjects.refusals import busy, invalid_schema
from leafcuttr_sdk.schemas import Difference

_MOST: Final = 100
"""Reasons that are told of one version."""
_MOST_TEXT: Final = 2 * 1024 * 1024
"""Characters of the versions that are sent to a worker process at once."""
_PART: Final = 0.8
"""Of the time that is left, what the worker process uses: the last version, and the way, take some too."""


class Earlier(NamedTuple):
    """A version that a new schema is compared with."""

    version: int
    type: str
    source: Source
    identity: bytes
    """What tells it from all others of its type, with those that it names."""


class Asked(NamedTuple):
    """What the config of a subject asks for."""

    level: str
    lenient: bool = False
    """`compatibilityPolicy`"""
    validate_fields: bool = False


async def messages(
    checks: Checks, new: Earlier, earlier: Sequence[Earlier], asked: Asked, limit: Limit
) -> list[str]:
    """Empty if it is compatible. `new` is of the version that it would become, `earlier` ascending. `limit`, of the
    request, has what is left for it. Raises Refusal 42201, and 503 where others took most of the time."""
    wanted = asked_for(asked.level, earlier)
    of_type = 0
    while of_type < len(wanted) and wanted[of_type].type == new.type:
        of_type += 1
    # The last version that it is not compatible with says it all.
    found = await _first(checks, new, wanted[:of_type], asked, limit)
    if found is not None:
        wrong, told = found[0], [_told(reason) for reason in found[1][:_MOST]]
    elif of_type < len(wanted):
        wrong = wanted[of_type]
        told = [
            "{errorType:'SCHEMA_TYPE', description:'The schema is of type "
            f"{new.type}, version {wrong.version} of type {wrong.type}'}}"
        ]
    else:
        return []
    return [*told, f"{{oldSchemaVersion: {wrong.version}}}", f"{{oldSchema: '{wrong.source.text}'}}"]


def asked_in_words(asked: Asked) -> str:
    """The last message of all."""
    return f"{{validateFields: '{str(asked.validate_fields).lower()}', compatibility: '{asked.level}'}}"


async def _first(
    checks: Checks, new: Earlier, others: Sequence[Earlier], asked: Asked, limit: Limit
) -> tuple[Earlier, list[Difference]] | None:
    """The first of them that it is not compatible with, and why."""
    ask = directions(asked.level)
    known = checks.compatible.of(new.type, new.identity, ask, lenient=asked.lenient)
    different: dict[bytes, Earlier] = {}
    for each in others:
        different.setdefault(each.identity, each)
    left = [each for each in different.values() if each.identity not in known]
    # The processor's time counts. By the clock ends what has none that is known: formats that no worker can import.
    until, total = trio.current_time() + limit.seconds * PATIENCE, len(left)
    while left:
        left_s = limit.left_s
        if left_s <= 0 or trio.current_time() >= until:
            if limit.was_others:
                raise busy()
            raise invalid_schema(
                f"too complex: of {total} versions {total - len(left)} were compared within {limit.seconds:.1f} s; a "
                "request with the same schema goes on from there"
            )
        some = _as_many(left)
        compared = await checks.differences(
            new.type, new.source, [(each.source, ask.backward, ask.forward) for each in some],
            lenient=asked.lenient, budget_s=left_s * _PART, limit=limit,
        )  # fmt: skip
        if compared[-1]:
            return left[len(compared) - 1], compared[-1]
        known.add(each.identity for each in some[: len(compared)])
        left = left[len(compared) :]
    return None


def _as_many(versions: Sequence[Earlier]) -> Sequence[Earlier]:
    """The first of them: one, and more up to a size."""
    size = 0
    for at, each in enumerate(versions):
        size += len(each.source.text)
        if size > _MOST_TEXT and at:
            return versions[:at]
    return versions


def _told(reason: Difference) -> str:
    parts = [f"errorType:'{reason.type}'", f"description:'{reason.message}'", f"path:'{reason.path}'"]
    for name, value in (("old", reason.old), ("new", reason.new)):
        if value is not None:
            parts.append(f"{name}:'{value}'")
    return f"{{{', '.join(parts)}}}"
