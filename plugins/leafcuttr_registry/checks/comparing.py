"""Why a schema is not compatible with the versions before it, as messages in the form of Confluent's registry: its
client tools show them as they are."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from leafcuttr_registry.checks.levels import asked_for, directions
from leafcuttr_registry.checks.reading import DEADLINE_S, Checks
from leafcuttr_registry.checks.work import Source
from leafcuttr_sdk.schemas import Difference

_MOST: Final = 100
"""Reasons that are told of one version."""
_AT_ONCE: Final = 100
"""Versions that are compared in one go, within the time of a check: a subject may have thousands of simple ones."""


class Earlier(NamedTuple):
    """A version that a new schema is compared with."""

    version: int
    type: str
    source: Source


async def messages(
    checks: Checks, type: str, new: Source, earlier: Sequence[Earlier], level: str, *, deadline_s: float
) -> list[str]:
    """Empty if it is compatible. `earlier` ascending. Raises Refusal 42201."""
    wanted = asked_for(level, earlier)
    of_type = [each for each in wanted if each.type == type]
    ask = directions(level)
    found: dict[int, list[str]] = {
        each.version: [
            "{errorType:'SCHEMA_TYPE', description:'The schema is of type "
            f"{type}, version {each.version} of type {each.type}'}}"
        ]
        for each in wanted
        if each.type != type
    }
    for at in range(0, len(of_type), _AT_ONCE):
        some = of_type[at : at + _AT_ONCE]
        pairs = [(each.source, ask.backward, ask.forward) for each in some]
        compared = await checks.differences(type, new, pairs, deadline_s=DEADLINE_S if at else deadline_s)
        for each, reasons in zip(some, compared, strict=True):
            if reasons:
                found[each.version] = [_told(reason) for reason in reasons[:_MOST]]
        if any(each.version in found for each in some):
            break  # no later one is told of
    told: list[str] = []
    for each in wanted:
        if each.version in found:
            told += found[each.version]
            told += [f"{{oldSchemaVersion: {each.version}}}", f"{{oldSchema: '{each.source.text}'}}"]
            break  # the last version that it is not compatible with says it all
    return [*told, f"{{validateFields: 'false', compatibility: '{level}'}}"] if told else []


def _told(reason: Difference) -> str:
    parts = [f"errorType:'{reason.type}'", f"description:'{reason.message}'", f"path:'{reason.path}'"]
    for name, value in (("old", reason.old), ("new", reason.new)):
        if value is not None:
            parts.append(f"{name}:'{value}'")
    return f"{{{', '.join(parts)}}}"
