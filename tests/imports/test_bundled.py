"""A plugin that comes with LeafCuttr is added by its folder, its entry point and its extra. What has to follow from
these does, or is compared here, with a line that says what is missing and where.

That each keeps its contracts is tested in tests/plugins/test_bundled.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from imports.graph import graph, modules
from leafcuttr.plugins import bundled_page, settings_page
from leafcuttr_sdk.plugin import Plugin
from support.bundled import BUNDLED, EXTRAS, FOLDERS, PROJECT, ROOT

FORBIDDEN = ("leafcuttr", "leafcuttr_sdk.testing")
NOT_IN_ALL = {"kerberos", "spark", "spark-connect", "spark-worker"}
"""Extras for programs of Spark: half a gigabyte, of which a broker needs nothing. And one that has to be compiled."""
INSTALL_ALL = ("noxfile.py", "Dockerfile", "docs/contributing.md")
DOCS = ROOT / "docs"


def plugin_of(name: str) -> Plugin:
    found = settings_page.bundled().get(name)
    assert found is not None, f"{name} is not installed: pip install -e . makes its entry point known"
    assert found.plugin is not None, found.line
    return found.plugin


def test_each_folder_has_an_entry_point_and_each_entry_point_a_folder() -> None:
    assert sorted(BUNDLED.values()) == FOLDERS


@pytest.mark.parametrize("name", BUNDLED)
def test_its_package_and_its_extra_are_named_as_it_is(name: str) -> None:
    plugin = plugin_of(name)
    assert plugin.name == name
    assert BUNDLED[name] == f"leafcuttr_{name.replace('-', '_')}"
    if plugin.extra is not None:
        assert plugin.extra in EXTRAS, f"pyproject.toml has no extra {plugin.extra}"
        assert plugin.modules, f"{name} says by `modules` what the extra {plugin.extra} brings"


# Layers


def above(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def violations() -> Iterator[str]:
    plugins = tuple(FOLDERS)
    for name, imports in graph(modules()).items():
        own = name.partition(".")[0]
        others = tuple(package for package in plugins if package != own)
        if own not in plugins:
            forbidden = plugins
        elif name == f"{own}.testing":
            # The plugin's own kit, for those who write for it.
            forbidden = (*others, "leafcuttr")
        else:
            forbidden = (*others, *FORBIDDEN, f"{own}.testing")
        yield from (f"{name} imports {one}" for one in sorted(imports) if above(one, forbidden))


def test_no_plugin_imports_another_or_the_broker_and_nothing_imports_a_plugin() -> None:
    """Also in functions and for types: a plugin imports the SDK and its own modules. Kits for tests are for tests."""
    found = list(violations())
    assert not found, "\n".join(found)


# Tools


def test_all_has_every_extra() -> None:
    found, new = set[str](), {"all"}
    while new:
        found |= new
        new = {
            extra
            for one in new
            for needed in EXTRAS[one]
            for listed in re.findall(r"leafcuttr\[([\w,-]+)\]", needed)
            for extra in listed.split(",")
        } - found
    assert sorted(EXTRAS.keys() - found - NOT_IN_ALL) == [], "these extras are not in `all` of pyproject.toml"
    assert not found & NOT_IN_ALL


def test_whatever_installs_everything_installs_all() -> None:
    for file in INSTALL_ALL:
        extras = re.findall(r"\.\[([\w,-]+)\]", (ROOT / file).read_text(encoding="utf-8"))
        assert extras, f"{file} installs no extras"
        # `all` leaves these out.
        assert {"all"} <= set(extras) <= {"all", "kerberos", "spark"}, (
            f"{file}: `all` has those that come later too"
        )


def test_the_tools_look_at_every_folder_of_plugins() -> None:
    """None of them names one."""
    tool = PROJECT["tool"]
    wheel = tool["hatch"]["build"]["targets"]["wheel"]
    for where in (
        wheel["only-include"],
        wheel["sources"],
        tool["hatch"]["build"]["targets"]["sdist"]["include"],
        tool["hatch"]["build"]["dev-mode-dirs"],
        tool["mypy"]["files"],
        tool["mypy"]["mypy_path"],
        tool["pyright"]["include"],
        tool["ruff"]["src"],
    ):
        assert "plugins" in where
    assert "\n!plugins\n" in (ROOT / ".dockerignore").read_text(encoding="utf-8")
    assert re.search(r"^COPY plugins ", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    "file", ["pyproject.toml", "noxfile.py", "Dockerfile", ".ci/run", "mkdocs.yml", "README.md"]
)
def test_no_other_place_names_the_package_of_a_plugin(file: str) -> None:
    entries = {f'{name} = "{package}"' for name, package in BUNDLED.items()}
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    named = [line for line in lines if any(package in line for package in FOLDERS) and line not in entries]
    assert named == []


# Documentation


@pytest.mark.parametrize("name", BUNDLED)
def test_it_has_a_page_that_can_be_found(name: str) -> None:
    """The list of bundled plugins links to it."""
    page = bundled_page.page_of(name)
    assert (DOCS / "reference" / page).resolve().is_file(), f"docs/how-to/{name}.md is missing"
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert f": how-to/{name}.md\n" in nav, f"how-to/{name}.md is not in nav of mkdocs.yml"


def test_the_list_of_plugins_is_that_of_the_code() -> None:
    text = (DOCS / "reference" / "plugins.md").read_text(encoding="utf-8")
    command = "run: python -m leafcuttr.plugins.bundled_page > docs/reference/plugins.md"
    assert text == bundled_page.page(), command
    assert "(reference/plugins.md)" in (DOCS / "index.md").read_text(encoding="utf-8")
    assert ": reference/plugins.md\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
