"""parso's trees, with the types that parso leaves out."""

from parso.tree import Leaf, NodeOrLeaf

Position = tuple[tuple[int, int], tuple[int, int]]


def code_of(node: NodeOrLeaf) -> str:
    """The source of a node without the space or comments before it."""
    code: str = node.get_code(include_prefix=False)  # type: ignore[no-untyped-call]
    return code.strip()


def first_leaf(node: NodeOrLeaf) -> Leaf:
    leaf: Leaf = node.get_first_leaf()  # type: ignore[no-untyped-call]
    return leaf


def next_code(node: NodeOrLeaf) -> str:
    """The source of the leaf behind a node."""
    leaf = node.get_next_leaf()  # type: ignore[no-untyped-call]
    return "" if leaf is None else code_of(leaf)
