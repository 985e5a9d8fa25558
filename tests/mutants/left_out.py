"""What is not mutated, because a test of it would be a test of words: log lines, the arguments of exceptions, texts,
annotations, the names of crash points."""

from collections.abc import Iterator

from parso.python.tree import IfStmt
from parso.tree import BaseNode, NodeOrLeaf

from mutants.tree import code_of

_LOGGERS = ("_log.", "logger.")
_CALLS = (*_LOGGERS, "reach(")
_ONLY_WORDS = ("__repr__", "__str__")


def is_left_out(node: NodeOrLeaf) -> bool:
    """Whether a change at this node would change words only."""
    if _is_call_of_words(node) or _is_star_of_parameters(node):
        return True
    child, parent = node, node.parent
    while parent is not None:
        if parent.type in ("fstring", "decorator", "raise_stmt", "import_from", "import_name"):
            return True
        if _is_call_of_words(parent) or _is_annotation(child, parent):
            return True
        child, parent = parent, parent.parent
    return _only_words_follow(node)


def _is_star_of_parameters(node: NodeOrLeaf) -> bool:
    return node.type == "operator" and node.parent is not None and node.parent.type == "parameters"


def is_skipped(function: str) -> bool:
    return function.rpartition(".")[2] in _ONLY_WORDS


def _is_call_of_words(node: NodeOrLeaf) -> bool:
    """Whether the node, or the only statement in it, logs something or reaches a crash point."""
    if node.type == "simple_stmt" and isinstance(node, BaseNode):
        node = node.children[0]
    return node.type == "atom_expr" and code_of(node).startswith(_CALLS)


def _is_annotation(child: NodeOrLeaf, parent: NodeOrLeaf) -> bool:
    if not isinstance(parent, BaseNode):
        return False
    at: int = parent.children.index(child)
    if parent.type == "annassign":
        return at == 1
    if parent.type == "tfpdef":
        return at == 2
    return parent.type == "funcdef" and at > 0 and code_of(parent.children[at - 1]) == "->"


def _only_words_follow(node: NodeOrLeaf) -> bool:
    """Whether the node is, or is in the condition of, an `if` of which every branch only logs."""
    child: NodeOrLeaf = node
    parent: NodeOrLeaf | None = node
    while parent is not None and not isinstance(parent, IfStmt):
        if parent.type in ("simple_stmt", "suite", "funcdef"):
            return False
        child, parent = parent, parent.parent
    if parent is None or not isinstance(parent, IfStmt):
        return False
    branches = [part for part in parent.children if part.type in ("suite", "simple_stmt")]
    if child in branches:
        return False
    return all(_is_call_of_words(line) for branch in branches for line in _statements(branch))


def _statements(branch: NodeOrLeaf) -> Iterator[NodeOrLeaf]:
    if branch.type == "suite" and isinstance(branch, BaseNode):
        yield from (line for line in branch.children if line.type != "newline")
    else:
        yield branch
