"""Operators on the arguments of calls: swapped, None, the smaller for the larger. They have the interface of
cosmic-ray's operators."""

from collections.abc import Iterator
from itertools import pairwise

from parso.python.tree import Keyword, Name, PythonNode
from parso.tree import BaseNode, NodeOrLeaf

from mutants.tree import Position, code_of, first_leaf, next_code

_OTHER = {"min": "max", "max": "min"}


class SwapArguments:
    """Two neighbouring positional arguments change places."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        for left, right in _pairs(node):
            yield left.start_pos, right.end_pos

    def mutate(self, node: PythonNode, index: int) -> PythonNode:
        left, right = list(_pairs(node))[index]
        here, there = node.children.index(left), node.children.index(right)
        leaves = first_leaf(left), first_leaf(right)
        leaves[0].prefix, leaves[1].prefix = leaves[1].prefix, leaves[0].prefix
        node.children[here], node.children[there] = right, left
        return node


class ArgumentToNone:
    """An argument of a call that has several is None; a text is left alone, it is there to be read."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        for value in _values(node):
            yield value.start_pos, value.end_pos

    def mutate(self, node: PythonNode, index: int) -> PythonNode:
        value = list(_values(node))[index]
        holder = value.parent
        assert holder is not None
        none = Keyword("None", value.start_pos, prefix=first_leaf(value).prefix)
        holder.children[holder.children.index(value)] = none
        return node


class SwapMinMax:
    """`min` for `max`, and the other way round."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        if isinstance(node, Name) and node.value in _OTHER and _is_called(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Name, index: int) -> Name:
        node.value = _OTHER[node.value]
        return node


def called_name(arguments: NodeOrLeaf) -> str:
    """What is called with these arguments, as it is written."""
    trailer = arguments.parent
    if trailer is None or trailer.type != "trailer" or trailer.parent is None:
        return ""
    before = trailer.parent.children[: trailer.parent.children.index(trailer)]
    return "".join(code_of(part) for part in before)


def _arguments(node: NodeOrLeaf) -> list[NodeOrLeaf]:
    """The arguments of a call with several, without commas."""
    if not isinstance(node, BaseNode) or node.type != "arglist" or called_name(node) in _OTHER:
        return []
    return [child for child in node.children if child.type != "operator"]


def _pairs(node: NodeOrLeaf) -> list[tuple[NodeOrLeaf, NodeOrLeaf]]:
    given = _arguments(node)
    positional = [child for child in given if child.type != "argument"]
    return list(pairwise(positional))


def _values(node: NodeOrLeaf) -> Iterator[NodeOrLeaf]:
    for child in _arguments(node):
        if child.type != "argument":
            value = child
        elif isinstance(child, BaseNode) and len(child.children) == 3:  # name=value, not *args
            value = child.children[2]
        else:
            continue
        if code_of(value) != "None" and value.type not in ("string", "strings", "fstring"):
            yield value


def _is_called(name: Name) -> bool:
    return next_code(name) == "("
