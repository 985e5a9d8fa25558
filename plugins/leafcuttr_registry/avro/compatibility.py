"""Whether a reader's schema reads what a writer's schema wrote (specification, "Schema Resolution"), with the verdicts,
the names and the places of Java's SchemaCompatibility, which Confluent's registry answers with.

Pairs of types are compared, each once. A pair that is met again while it is being compared is taken to fit: recursive
types fit unless something within them does not. The comparison is written as generators that a loop runs: two recursive
types may be followed through as many pairs as one has types times the other.
"""

from collections.abc import Generator
from enum import Enum
from typing import Final, TypeAlias

from leafcuttr_registry.avro import words
from leafcuttr_registry.avro.types import (
    NO_DEFAULT,
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    MapType,
    NamedType,
    PrimitiveType,
    RecordType,
    UnionType,
)
from leafcuttr_registry.budget import Budget
from leafcuttr_sdk.schemas import Difference

MOST_DIFFERENCES: Final = 1000
"""More are not listed: the verdict is known by the first."""
_COST_OF_A_PAIR: Final = 5
_SMALL: Final = 4
"""Branches of a union up to which no verdicts are kept."""

_PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
"""What is read as what (specification: "the writer's schema may be promoted to the reader's")."""

Location: TypeAlias = "tuple[Location, str | int] | None"
Steps: TypeAlias = "Generator[Steps, bool, bool]"


class _Verdict(Enum):
    COMPARING = 0
    FITS = 1
    FAILS = 2
    """And what is wrong has not been listed: the pair was tried as a branch of a union."""
    LISTED = 3


def differences(reader: AvroType, writer: AvroType, budget: Budget) -> list[Difference]:
    """Empty where all that the writer writes can be read. Raises SchemaError."""
    comparison = _Comparison(budget)
    comparison.run(comparison.pair(reader, writer, None, comparison.main))
    return comparison.main.found


def path_of(place: Location) -> str:
    """A JSON pointer in the reader's schema, `/` for the whole, as Java's library gives it."""
    tokens: list[str] = []
    while place is not None:
        place, token = place
        tokens.append(str(token))
    return "/" + "/".join(reversed(tokens))


def same_name(reader: NamedType, writer: NamedType) -> bool:
    """Namespaces may differ, as in Java's library."""
    return reader.name.simple == writer.name.simple or writer.name in reader.aliases


class _Sink:
    """Where differences are listed. Pairs that are only tried have none."""

    __slots__ = ("_most", "found")

    def __init__(self, most: int) -> None:
        self.found: list[Difference] = []
        self._most = most

    def full(self) -> bool:
        return len(self.found) >= self._most

    def list(self, type: str, place: Location, old: str | None, new: str | None, message: str) -> None:
        if not self.full():
            self.found.append(Difference(type, path_of(place), old, new, words.cut(message)))


class _Comparison:
    def __init__(self, budget: Budget) -> None:
        self.main = _Sink(MOST_DIFFERENCES)
        self._budget = budget
        self._ambiguous: set[int] = set()
        """Fields that are listed as such."""
        self._verdicts: dict[tuple[int, int], _Verdict] = {}

    def run(self, steps: Steps) -> bool:
        stack = [steps]
        answer = False
        started = True
        while stack:
            try:
                following = next(stack[-1]) if started else stack[-1].send(answer)
            except StopIteration as ended:
                stack.pop()
                answer, started = ended.value, False
            else:
                stack.append(following)
                started = True
        return answer

    def pair(self, reader: AvroType, writer: AvroType, place: Location, sink: _Sink | None) -> Steps:
        """Whether it fits; what does not is listed in `sink`."""
        self._budget.spend(_COST_OF_A_PAIR)
        if _plainly_fits(reader, writer):
            return True
        if sink and sink.full():
            sink = None
        key = (id(reader), id(writer))
        verdict = self._verdicts.get(key)
        if verdict in (_Verdict.COMPARING, _Verdict.FITS):
            return True
        failed = verdict in (_Verdict.FAILS, _Verdict.LISTED)
        if failed and (sink is None or (sink is self.main and verdict is _Verdict.LISTED)):
            return False
        self._verdicts[key] = _Verdict.COMPARING
        fits = yield from self._compare(reader, writer, place, sink)
        if failed or not fits:
            listed = sink is self.main or verdict is _Verdict.LISTED
            self._verdicts[key] = _Verdict.LISTED if listed else _Verdict.FAILS
            return False
        self._verdicts[key] = _Verdict.FITS
        return True

    def _compare(self, reader: AvroType, writer: AvroType, place: Location, sink: _Sink | None) -> Steps:
        if isinstance(writer, UnionType):
            return (yield from self._writers_union(reader, writer, place, sink))
        if isinstance(reader, UnionType):
            return (yield from self._readers_union(reader, writer, place, sink))
        if isinstance(reader, RecordType) and isinstance(writer, RecordType):
            named = self._names(reader, writer, place, sink)
            return (yield from self._fields(reader, writer, place, sink)) and named
        if isinstance(reader, ArrayType) and isinstance(writer, ArrayType):
            return (yield self.pair(reader.items, writer.items, (place, "items"), sink))
        if isinstance(reader, MapType) and isinstance(writer, MapType):
            return (yield self.pair(reader.values, writer.values, (place, "values"), sink))
        if isinstance(reader, EnumType) and isinstance(writer, EnumType):
            named = self._names(reader, writer, place, sink)
            return self._symbols(reader, writer, place, sink) and named
        if isinstance(reader, FixedType) and isinstance(writer, FixedType):
            named = self._names(reader, writer, place, sink)
            return self._sizes(reader, writer, place, sink) and named
        if _readable(reader, writer):
            return True
        if sink:
            old, new = words.shown(writer), words.shown(reader)
            text = f"{words.an(old)} cannot be read as {words.an(new)}"
            sink.list("TYPE_MISMATCH", place, old, new, text)
        return False

    def _writers_union(
        self, reader: AvroType, writer: UnionType, place: Location, sink: _Sink | None
    ) -> Steps:
        """Each branch has to be read."""
        fits = True
        for at, branch in enumerate(writer.branches):
            if not isinstance(reader, UnionType):
                fits = (yield self.pair(reader, branch, (place, at), sink)) and fits
            elif not (yield self.pair(reader, branch, place, None)):
                fits = False
                if sink:
                    yield from self._list_branch(reader, branch, place, (place, at), sink)
        return fits

    def _readers_union(
        self, reader: UnionType, writer: AvroType, place: Location, sink: _Sink | None
    ) -> Steps:
        """One branch has to read it."""
        for at, branch in enumerate(reader.branches):
            self._budget.spend()
            known = (id(branch), id(writer)) in self._verdicts
            if (known or _may_fit(branch, writer)) and (yield self.pair(branch, writer, (place, at), None)):
                return True
        if sink:
            yield from self._list_branch(reader, writer, place, place, sink)
        return False

    def _list_branch(
        self, reader: UnionType, writer: AvroType, union: Location, place: Location, sink: _Sink
    ) -> Generator[Steps, bool, None]:
        """With the first thing that is wrong in the branch that is meant, by its type and name."""
        old, new = words.shown(writer), words.shown(reader)
        text = f"no branch of the {new} can read {words.an(old)}"
        meant = next((at for at, branch in enumerate(reader.branches) if _is_meant(branch, writer)), None)
        if meant is not None:
            detail = _Sink(1)
            yield self.pair(reader.branches[meant], writer, (union, meant), detail)
            text += "".join(f" (at {one.path}: {one.message})" for one in detail.found)
        sink.list("MISSING_UNION_BRANCH", place, old, new, text)

    def _fields(self, reader: RecordType, writer: RecordType, place: Location, sink: _Sink | None) -> Steps:
        fits = True
        for at, field in enumerate(reader.fields):
            self._budget.spend()
            where: Location = ((place, "fields"), at)
            written = [
                writer.by_name[name] for name in (field.name, *field.aliases) if name in writer.by_name
            ]
            if len(written) > 1:
                fits = False
                self._list_ambiguous(field, written, where)
            elif written:
                fits = (yield self.pair(field.type, written[0].type, (where, "type"), sink)) and fits
            elif field.default is NO_DEFAULT:
                fits = False
                if not sink:
                    continue
                if isinstance(field.type, EnumType) and field.type.default is not None:
                    # Java's library compares the enum with the whole record, which never fits.
                    text = (
                        f"the field {field.name!r} is not in the writer's record: the default of its enum is for "
                        "symbols that are unknown, and not for a field that is missing"
                    )
                    sink.list("TYPE_MISMATCH", (where, "type"), None, words.shown(field.type), text)
                else:
                    text = f"the field {field.name!r} is not in the writer's record, and has no default"
                    shown = f"{field.name}: {words.shown(field.type)}"
                    sink.list("READER_FIELD_MISSING_DEFAULT_VALUE", where, None, shown, text)
        return fits

    def _list_ambiguous(self, field: Field, written: list[Field], place: Location) -> None:
        """Java's library ends with an exception, also where another branch of a union would do."""
        if id(field) in self._ambiguous:
            return
        self._ambiguous.add(id(field))
        old = words.listed([one.name for one in written])
        text = f"the field {field.name!r} is, by its name and aliases, more than one of the writer's: {old}"
        self.main.list("READER_FIELD_AMBIGUOUS", place, old, field.name, text)

    def _names(self, reader: NamedType, writer: NamedType, place: Location, sink: _Sink | None) -> bool:
        if same_name(reader, writer):
            return True
        if sink:
            old, new = writer.name.full, reader.name.full
            text = f"the {writer.kind} {old} is called {new} by the reader, which has no alias {old}"
            sink.list("NAME_MISMATCH", (place, "name"), old, new, text)
        return False

    def _symbols(self, reader: EnumType, writer: EnumType, place: Location, sink: _Sink | None) -> bool:
        if reader.default is not None:
            return True
        self._budget.spend(1 + (len(writer.symbols) + len(reader.symbols)) // 10)
        missing = sorted(set(writer.symbols) - set(reader.symbols))
        if missing and sink:
            lacking = words.listed(missing)
            text = f"the reader's enum {reader.name.full} has neither the writer's {lacking} nor a default"
            old, new = words.symbols(writer), words.symbols(reader)
            sink.list("MISSING_ENUM_SYMBOLS", (place, "symbols"), old, new, text)
        return not missing

    def _sizes(self, reader: FixedType, writer: FixedType, place: Location, sink: _Sink | None) -> bool:
        if reader.size == writer.size:
            return True
        if sink:
            text = (
                f"the writer's fixed {writer.name.full} has {writer.size} bytes, the reader's {reader.size}"
            )
            sink.list("FIXED_SIZE_MISMATCH", (place, "size"), str(writer.size), str(reader.size), text)
        return False


def _plainly_fits(reader: AvroType, writer: AvroType) -> bool:
    """Whether it can be said at once that it fits: of primitive types and small unions, as most fields are."""
    if isinstance(writer, UnionType):
        return len(writer.branches) <= _SMALL and all(_plainly_fits(reader, one) for one in writer.branches)
    if not isinstance(writer, PrimitiveType):
        return False
    if isinstance(reader, UnionType):
        return len(reader.branches) <= _SMALL and any(_readable(one, writer) for one in reader.branches)
    return _readable(reader, writer)


def _readable(reader: AvroType, writer: AvroType) -> bool:
    """Of types that are not the same complex one."""
    return reader.kind == writer.kind or writer.kind in _PROMOTIONS.get(reader.kind, ())


def _is_meant(reader: AvroType, writer: AvroType) -> bool:
    """Of the same type, and of the same name if it has one."""
    if isinstance(reader, NamedType) and isinstance(writer, NamedType) and not same_name(reader, writer):
        return False
    return reader.kind == writer.kind


def _may_fit(reader: AvroType, writer: AvroType) -> bool:
    """What can be said at a glance, of a branch: unions have many, and most are of other types or names."""
    if isinstance(reader, NamedType) and isinstance(writer, NamedType) and not same_name(reader, writer):
        # Fields with aliases may be ambiguous, which ends the comparison whatever the record is called.
        return isinstance(reader, RecordType) and reader.aliased and isinstance(writer, RecordType)
    return _readable(reader, writer)
