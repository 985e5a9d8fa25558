"""Every module of the SDK has a page in the reference, made from its docstrings when the documentation is built."""

from __future__ import annotations

import re
from pathlib import Path

import leafcuttr_sdk
from leafcuttr_sdk import testing

DOCS = Path(__file__).parents[2] / "docs"
PAGES = DOCS / "reference" / "sdk"


def test_a_page_for_each_module_and_all_are_listed() -> None:
    folder = Path(leafcuttr_sdk.__file__).parent
    modules = {file.stem for file in folder.glob("*.py")} | {
        file.parent.name for file in folder.glob("*/__init__.py")
    }
    # The hooks have pages of their own, and what begins with _ is nobody's business.
    modules = {name for name in modules - {"hooks"} if not name.startswith("_")}
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


def test_every_check_has_a_row_and_every_name_of_the_testing_kit_its_place() -> None:
    how_to, reference = (DOCS / "how-to" / "test-a-plugin.md").read_text(), (PAGES / "testing.md").read_text()
    rows = "".join(line for line in how_to.splitlines() if line.startswith("| `check"))
    assert [name for name in testing.__all__ if name.startswith("check_") and f"`{name}`" not in rows] == []
    assert [name for name in testing.__all__ if not re.search(rf"\b{name}\b", reference)] == []
