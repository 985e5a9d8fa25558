"""Every module of the SDK has a page in the reference, made from its docstrings when the documentation is built."""

from __future__ import annotations

import re
from pathlib import Path

import leafcuttr_sdk

DOCS = Path(__file__).parents[2] / "docs"
PAGES = DOCS / "reference" / "sdk"


def test_a_page_for_each_module_and_all_are_listed() -> None:
    folder = Path(leafcuttr_sdk.__file__).parent
    modules = {file.stem for file in folder.glob("*.py")} | {
        file.parent.name for file in folder.glob("*/__init__.py")
    }
    modules -= {"__init__", "hooks"}  # the hooks have pages of their own
    assert {file.stem for file in PAGES.glob("*.md")} - {"index"} == modules
    index, nav = (PAGES / "index.md").read_text(), (DOCS.parent / "mkdocs.yml").read_text()
    for module in modules:
        assert f"::: leafcuttr_sdk.{module}\n" in (PAGES / f"{module}.md").read_text()
        assert f"| [`leafcuttr_sdk.{module}`]({module}.md) |" in index
        assert f"reference/sdk/{module}.md" in nav


def test_every_public_name_has_a_docstring_or_says_what_it_is() -> None:
    for name in leafcuttr_sdk.__all__:
        thing = getattr(leafcuttr_sdk, name)
        if isinstance(thing, type):
            assert thing.__doc__ and not re.match(rf"{name}\(", thing.__doc__), name
