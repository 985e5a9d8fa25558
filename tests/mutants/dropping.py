"""Operators that take something away: a guard, a statement. They have the interface of cosmic-ray's operators."""

from collections.abc import Iterator

from parso.python.tree import IfStmt, Keyword, PythonNode
from parso.tree import BaseNode, NodeOrLeaf

from mutants.tree import Position, code_of, first_leaf


class DropGuard:
    """`if x: ...` without an `else` never happens."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        if isinstance(node, IfStmt) and len(node.children) == 4:
            yield node.start_pos, node.end_pos

    def mutate(self, node: IfStmt, index: int) -> IfStmt:
        condition = node.children[1]
        node.children[1] = Keyword("False", condition.start_pos, prefix=" ")
        return node


class DropStatement:
    """A statement of which only the effect counts is not there: a call, a `del`, a `raise`, an assignment to an
    attribute or an element, one that adds to a variable."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        if node.type == "simple_stmt" and isinstance(node, PythonNode) and _has_effect(node.children[0]):
            yield node.start_pos, node.end_pos

    def mutate(self, node: PythonNode, index: int) -> PythonNode:
        statement = node.children[0]
        node.children[0] = Keyword("pass", statement.start_pos, prefix=first_leaf(statement).prefix)
        return node


def _has_effect(statement: NodeOrLeaf) -> bool:
    if statement.type != "expr_stmt" or not isinstance(statement, BaseNode):
        return statement.type in ("atom_expr", "del_stmt", "raise_stmt")
    target, sign = statement.children[:2]
    if sign.type == "annassign":
        return False
    return target.type == "atom_expr" or code_of(sign) != "="
