"""What a plugin author knows by a name is nothing else in the broker."""

import ast
from collections.abc import Iterator

import leafcuttr_sdk
from imports.graph import modules

VIEWS = {"Broker", "Record", "Settings", "Topics"}
"""What plugins see of the very thing that has this name in the broker."""


def classes(package: str) -> Iterator[tuple[str, str]]:
    """The names of the classes of a package, each with its module. The messages of Kafka have Kafka's names."""
    for module, path in modules().items():
        if module.split(".")[0] == package and not module.startswith("leafcuttr.wire.messages."):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    yield node.name, module


def test_no_class_of_the_broker_has_a_name_that_the_sdk_exports() -> None:
    exported = {name for name in leafcuttr_sdk.__all__ if isinstance(getattr(leafcuttr_sdk, name), type)}
    assert len(exported) > 40
    clashes = {name: module for name, module in classes("leafcuttr") if name in exported - VIEWS}
    assert clashes == {}
    assert [name for name, _ in classes("leafcuttr_http") if name in exported] == []
    assert exported & {name for name, _ in classes("leafcuttr")} == VIEWS, "no more of these are needed"
