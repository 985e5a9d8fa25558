"""Whether a pipeline can go on from its checkpoint: what Spark has in it must fit what the pipeline does now.

Spark finds sources and state in a checkpoint by their places in the query, and keeps state in the form that its step
had. So these have to stay as they were:

- the sources that are read, in their order in the query, and their kinds; a topic more is no harm, one less is;
- the places in which they are read: a frame that two steps use, or that a query names twice, is read in two, and each
  place has offsets of its own. Of dead letters the places are not counted, as only Spark tells which expressions can
  fail; it refuses another number of places by itself;
- the steps with state, in their order, with their names, which are in the state, and all that shapes it: keys,
  windows, expressions, time limits;
- the store of state.

All other parts may change: steps without state, names of others, sinks, triggers, limits, the cluster's address. The
fingerprint of those above is kept beside the checkpoint, as text that people can read.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from leafcuttr_spark.pipelines.checking.queries import places_of
from leafcuttr_spark.pipelines.model import Step, TopicOrigin
from leafcuttr_spark.pipelines.operations import Sql, Stateful

if TYPE_CHECKING:
    from leafcuttr_spark.pipelines.model import Pipeline, Source

VERSION: Final = 1
MOST_PLACES: Final = 10_000
"""They may double with each step. Spark would not plan so many."""


class Change(NamedTuple):
    """One thing that was another one when the checkpoint began."""

    part: str
    """`source orders`, `step totals`."""
    what: str


class Fingerprint(NamedTuple):
    """What has to stay. Everything in it is JSON."""

    store: str
    sources: list[dict[str, Any]]
    """In the order in which the query reads them."""
    steps: list[dict[str, Any]]
    """Those with state, in the order of the query."""
    places: Sequence[int] = ()
    """The places in which the query reads, in its order: of each the index of its source. Empty: unknown."""

    def as_json(self) -> str:
        return json.dumps({"version": VERSION, **self._asdict()}, indent=1, ensure_ascii=False) + "\n"


def fingerprint_of(pipeline: "Pipeline") -> Fingerprint:
    """Of the pipeline as it is now."""
    sources: dict[str, dict[str, Any]] = {}
    steps: dict[str, dict[str, Any]] = {}
    makers = {frame: step for step in pipeline.steps for frame in step.frames}
    for frame in _frames_in_order(pipeline, makers):
        step = makers.get(frame)
        if step is None:
            sources[frame] = {"source": frame, **_of_source(pipeline.sources[frame])}
        elif isinstance(step.operation, get_args(Stateful)):
            steps[step.name] = {"step": step.name, **_of_step(step)}
    index = {name: number for number, name in enumerate(sources)}
    places = [index[name] for name in _places(pipeline, makers)]
    return Fingerprint(pipeline.state_store, list(sources.values()), list(steps.values()), places)


def read_fingerprint(path: Path) -> Fingerprint | None:
    """None where there is none of this version."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["version"] != VERSION:
            return None
        sources, steps = [*map(dict, found["sources"])], [*map(dict, found["steps"])]
        places = [*map(int, found.get("places", ()))]
        if not all(0 <= place < len(sources) for place in places):
            return None
        return Fingerprint(str(found["store"]), sources, steps, places)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def changes_between(before: Fingerprint, now: Fingerprint) -> list[Change]:
    """What keeps Spark from going on; nothing where it can."""
    found = (
        [Change("state", f"the store was {before.store} and is {now.store}")]
        if before.store != now.store
        else []
    )
    found += (sources := [*_of_list("source", before.sources, now.sources)])
    if not sources and before.places and now.places and before.places != now.places:
        found.append(Change("sources", f"were read as {_in_words(before)} and are read as {_in_words(now)}"))
    found += _of_list("step", before.steps, now.steps)
    return found


# How


def _frames_in_order(pipeline: "Pipeline", makers: Mapping[str, Step]) -> Iterator[str]:
    """The frames that sinks need, each once, what it is made of before it: as Spark walks through the query."""
    seen: set[str] = set()

    def walk(frame: str) -> Iterator[str]:
        if frame in seen:
            return
        seen.add(frame)
        if frame in makers:
            for one in makers[frame].inputs:
                yield from walk(one)
        if frame in makers or frame in pipeline.sources:
            yield frame

    for sink in pipeline.sinks.values():
        yield from walk(sink.from_)


def _places(pipeline: "Pipeline", makers: Mapping[str, Step]) -> list[str]:
    """The streams that the query reads, in its order, as often as it reads them; nothing where these are too many."""
    known: dict[str, list[str]] = {}

    def of(frame: str) -> list[str]:
        if frame not in known:
            known[frame] = []  # Of a cycle, which has been refused.
            if (step := makers.get(frame)) is not None:
                known[frame] = together(_inputs(step))
            elif frame in pipeline.sources and _is_stream(pipeline.sources[frame]):
                known[frame] = [frame]
        return known[frame]

    def together(frames: Iterable[str]) -> list[str]:
        found: list[str] = []
        for frame in frames:
            found += of(frame)
            if len(found) > MOST_PLACES:
                raise OverflowError
        return found

    try:
        found = together(dict.fromkeys(sink.from_ for sink in pipeline.sinks.values()))
    except OverflowError:
        return []
    # Of files Spark makes one source of all places.
    return [
        name
        for number, name in enumerate(found)
        if isinstance(pipeline.sources[name].origin, TopicOrigin) or name not in found[:number]
    ]


def _inputs(step: Step) -> Sequence[str]:
    operation = step.operation
    if isinstance(operation, Sql):
        found = [name for name in places_of(operation.query) if name in operation.frames]
        return found or operation.frames
    return step.inputs


def _is_stream(source: "Source") -> bool:
    """What is whole on each executor is read anew with each batch, and has no offsets."""
    return source.table is None or (isinstance(source.origin, TopicOrigin) and not source.table.is_global)


def _of_source(source: "Source") -> dict[str, Any]:
    origin = source.origin
    if isinstance(origin, TopicOrigin):
        kind: dict[str, Any] = {"kind": f"topics by {origin.via}"}
        kind |= {"pattern": origin.pattern} if origin.pattern else {"topics": sorted(origin.topics)}
    else:
        kind = {"kind": f"files of {origin.format}", "path": origin.path}
    if source.table is not None:
        kind["table"] = list(source.table.key)
    return kind


def _of_step(step: Step) -> dict[str, Any]:
    operation = step.operation
    found: dict[str, Any] = {"operation": type(operation).__name__.lower()}
    for field in fields(operation):
        found[field.name.rstrip("_")] = _plain(getattr(operation, field.name))
    return found


def _plain(value: Any) -> Any:
    """As JSON gives it back."""
    if hasattr(value, "__dataclass_fields__"):
        return {
            "type": type(value).__name__,
            **{one.name: _plain(getattr(value, one.name)) for one in fields(value)},
        }
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_plain, value)]
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def _of_list(what: str, before: list[dict[str, Any]], now: list[dict[str, Any]]) -> Iterator[Change]:
    """By places."""
    for place in range(max(len(before), len(now))):
        if place >= len(before):
            yield Change(f"{what} {now[place][what]}", "is new")
        elif place >= len(now):
            yield Change(f"{what} {before[place][what]}", "is gone")
        else:
            yield from _of_one(what, before[place], now[place])


def _of_one(what: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
    part = f"{what} {now[what]}"
    kind = "kind" if what == "source" else "operation"
    # State is found by the name of its step; a source is found by its place alone.
    is_other = what == "step" and before[what] != now[what]
    if is_other or before.get(kind) != now.get(kind):
        yield Change(part, f"was {before[what]} ({before.get(kind)}) and is {now.get(kind)}")
        return
    for name in {**before, **now}:
        old, new = before.get(name), now.get(name)
        if name == what or old == new:
            continue
        if name == "topics" and old and new and set(old) <= set(new):
            continue
        yield Change(part, f"{name} was {_shown(old)} and is {_shown(new)}")


def _in_words(one: Fingerprint) -> str:
    return _shown([one.sources[place]["source"] for place in one.places])


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
