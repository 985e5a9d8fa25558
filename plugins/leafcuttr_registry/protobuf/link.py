"""From a text and its references to descriptors: parses all files, gives names their meaning, applies all checks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf import tree
from leafcuttr_registry.protobuf.adopt import adopted
from leafcuttr_registry.protobuf.builtin import MODULES, TEXTS
from leafcuttr_registry.protobuf.check import check_names, check_whole
from leafcuttr_registry.protobuf.describe import Describer
from leafcuttr_registry.protobuf.features import defaults_of
from leafcuttr_registry.protobuf.model import Source, Universe
from leafcuttr_registry.protobuf.options import interpret_options
from leafcuttr_registry.protobuf.parser import parse_file
from leafcuttr_registry.protobuf.resolve import resolve_types
from leafcuttr_registry.protobuf.serialized import tree_of_text
from leafcuttr_sdk.schemas import ResolvedReference, SchemaError

ROOT: Final = "default"
"""The name of the file of the schema itself, which the text does not say."""
MAX_IMPORT_DEPTH: Final = 100


@dataclass(slots=True)
class Linked:
    """A schema that is right."""

    source: Source
    universe: Universe
    order: list[Source]
    """All files, each one after those that it imports; the last one is `source`."""


def link(text: str, references: Mapping[str, ResolvedReference], budget: Budget) -> Linked:
    """Raises SchemaError: what is wrong, in which file and line."""
    linker = _Linker(budget)
    root = Source(ROOT, text)
    linker.link(root, [references], 0)
    return Linked(root, linker.universe, linker.order)


class _Linker:
    def __init__(self, budget: Budget) -> None:
        self.universe = Universe()
        self.order: list[Source] = []
        self._budget = budget
        self._open: set[str] = set()

    def link(self, source: Source, references: list[Mapping[str, ResolvedReference]], depth: int) -> None:
        """`references`: those of the file, and of the files that led to it."""
        source.tree = self._tree(source)
        self._open.add(source.name)
        self._imports(source, source.tree, references, depth)
        self._open.discard(source.name)
        source.visible = {source}
        source.visible_to_options = {source}
        for node, each in zip(source.tree.imports, source.imports, strict=True):
            if node.kind != "option":
                source.visible |= _public(each)
            source.visible_to_options |= _public(each)
        Describer(self.universe, source, self._budget).describe()
        resolve_types(self.universe, source, self._budget)
        check_names(source)
        interpret_options(self.universe, source, self._budget)
        check_whole(self.universe, source, defaults_of(source.dialect, source.tree.edition))
        self.universe.sources[source.name] = source
        self.order.append(source)

    def _tree(self, source: Source) -> tree.File:
        try:
            source.text.encode()
        except UnicodeEncodeError as error:
            raise source.error(error.start, "the text is not valid Unicode") from None
        try:
            file = tree_of_text(source.text)
            return file if file is not None else parse_file(source.text, self._budget)
        except SchemaError as error:
            if source.root:
                raise
            raise SchemaError(
                f"in the reference {source.name}, {error}", path=source.name, line=error.line
            ) from None

    def _imports(
        self,
        source: Source,
        file: tree.File,
        references: list[Mapping[str, ResolvedReference]],
        depth: int,
    ) -> None:
        seen: set[str] = set()
        for each in file.imports:
            self._budget.spend()
            if each.name in seen:
                raise source.error(each.at, f"{each.name[:200]} is imported twice")
            seen.add(each.name)
            imported = self._imported(source, each, references, depth)
            source.imports.append(imported)
            if each.kind == "public":
                source.public.append(imported)

    def _imported(
        self,
        source: Source,
        node: tree.Import,
        references: list[Mapping[str, ResolvedReference]],
        depth: int,
    ) -> Source:
        name = node.name
        known = self.universe.sources.get(name)
        if known is not None:
            return known
        if name in self._open:
            raise source.error(node.at, f"{name[:200]} imports itself, through other files or directly")
        if depth >= MAX_IMPORT_DEPTH:
            raise source.error(node.at, f"files import one another more than {MAX_IMPORT_DEPTH} deep")
        reference = next((each[name] for each in references if name in each), None)
        if reference is not None:
            imported = Source(name, reference.text, root=False)
            self.link(imported, [reference.references, *references], depth + 1)
        elif name in MODULES:
            imported = self._adopt(name)
        elif name in TEXTS:
            imported = Source(name, TEXTS[name], root=False)
            self.link(imported, [], depth + 1)
        else:
            raise source.error(
                node.at, f"the file {name[:200]} is no reference of the schema and not built in"
            )
        return imported

    def _adopt(self, name: str) -> Source:
        known = self.universe.sources.get(name)
        if known is not None:
            return known
        found = adopted(name)
        for each in found.source.imports:
            self._adopt(each.name)
        if found.source.proto.package:
            self.universe.add_package(found.source.proto.package, found.source, -1)
        for symbol in found.symbols.values():
            self.universe.add(symbol, found.source, -1)
        self.universe.sources[name] = found.source
        self.order.append(found.source)
        return found.source


def _public(source: Source) -> set[Source]:
    """The file and those that it imports publicly, these too."""
    found: set[Source] = set()
    ahead = [source]
    while ahead:
        each = ahead.pop()
        if each not in found:
            found.add(each)
            ahead.extend(each.public)
    return found
