"""All mutants of a module."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.exceptions import CosmicRayTestingException
from cosmic_ray.mutating import mutate_code

from mutants.arguments import ArgumentToNone, SwapArguments, SwapMinMax
from mutants.dropping import DropGuard, DropStatement
from mutants.functions import FunctionSource, functions_in, text_of
from mutants.left_out import is_left_out, is_skipped

# Of a comparison its neighbour and its opposite: the others are killed by whatever kills these.
_COMPARISONS: Final = (
    "Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt",
    "Is_IsNot", "IsNot_Is",
)  # fmt: skip
_ARITHMETIC: Final = (
    "Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Mod_FloorDiv", "RShift_LShift",
    "LShift_RShift", "BitAnd_BitOr", "BitOr_BitAnd",
)  # fmt: skip

# cosmic-ray puts a name that the module does not have, which any exception that comes by would notice.
_NEVER_RAISED: Final = "ZeroDivisionError"


def _of_cosmic_ray(*names: str) -> list[Any]:
    return [cosmic_ray.plugins.get_operator(f"core/{name}")() for name in names]


OPERATORS: Final[dict[str, list[Any]]] = {
    "guard": [DropGuard()],
    "statement": [DropStatement()],
    "comparison": _of_cosmic_ray(*(f"ReplaceComparisonOperator_{name}" for name in _COMPARISONS)),
    "boolean": _of_cosmic_ray(
        "AddNot", "ReplaceUnaryOperator_Delete_Not", "ReplaceAndWithOr", "ReplaceOrWithAnd",
        "ReplaceTrueWithFalse", "ReplaceFalseWithTrue",
    ),
    "arithmetic": [
        *_of_cosmic_ray(*(f"ReplaceBinaryOperator_{name}" for name in _ARITHMETIC)),
        SwapMinMax(),
    ],
    "constant": _of_cosmic_ray("NumberReplacer", "ReplaceUnaryOperator_Delete_USub"),
    "argument": [SwapArguments(), ArgumentToNone()],
    "loop": _of_cosmic_ray("ZeroIterationForLoop", "ReplaceBreakWithContinue", "ReplaceContinueWithBreak"),
    "exception": _of_cosmic_ray("ExceptionReplacer"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. It is named by its function and text, so that lines above it may come and go."""

    module: str
    kind: str
    function: str
    old: str
    new: str
    nth: int
    """Which of the places in the function that read like `old`, from 1 on."""
    lines: tuple[str, ...]
    function_source: FunctionSource

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        return self.module, self.function, self.old, self.new, self.nth

    @property
    def description(self) -> str:
        return f"{self.function}: {self.old} -> {self.new}"

    def source(self, original: str) -> str:
        """The whole module with this change."""
        lines = original.splitlines(keepends=True)
        here = self.function_source
        return "".join([*lines[: here.first - 1], *self.lines, *lines[here.last :]])


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Every mutant of the functions of a module, each once."""
    found: dict[tuple[str, str, str, str, int], Mutant] = {}
    lines = source.splitlines(keepends=True)
    for function in functions_in(source):
        if is_skipped(function.name):
            continue
        text = lines[function.first - 1 : function.last]
        for kind, changed in _changes(text, function.indented):
            old, new, nth = _difference(text, changed)
            if old != new:
                mutant = Mutant(module, kind, function.name, old, new, nth, tuple(changed), function)
                found.setdefault(mutant.key, mutant)
    return list(found.values())


def _changes(lines: list[str], indented: bool) -> Iterator[tuple[str, list[str]]]:
    """The kind of each change, and the lines of the function with it."""
    # A method alone is no Python; a class around it has nothing in it to mutate.
    head = ["class _:\n"] if indented else []
    code = "".join([*head, *lines])
    nodes = list(ast_nodes(get_ast(code)))
    for kind, operators in OPERATORS.items():
        for operator in operators:
            occurrence = count()
            for node in nodes:
                for _ in operator.mutation_positions(node):
                    number = next(occurrence)
                    if not is_left_out(node):
                        changed: str = mutate_code(code, operator, number)
                        changed = changed.replace(CosmicRayTestingException.__name__, _NEVER_RAISED)
                        if _compiles(changed):
                            yield kind, changed.splitlines(keepends=True)[len(head) :]


def _compiles(code: str) -> bool:
    """A `not` before an assignment expression, for one, is no Python."""
    try:
        compile(code, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _difference(before: list[str], after: list[str]) -> tuple[str, str, int]:
    """The lines that differ, as text, and which of the places that read like that they are."""
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    end = 0
    while end < min(len(before), len(after)) - first and before[-1 - end] == after[-1 - end]:
        end += 1
    size = len(before) - end - first
    old = text_of(before[first : first + size])
    nth = 1 + sum(text_of(before[at : at + size]) == old for at in range(first))
    return old, text_of(after[first : len(after) - end]), nth
