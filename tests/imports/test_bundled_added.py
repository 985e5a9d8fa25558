"""Plugins are added to a copy of the tree in the three places that docs/contributing.md names: folder, entry point,
extra. One has no extra. All tools know them then, and the tests name what else they need; with that they pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.installed import build_wheel
from support.tree_copy import ROOT, copy_tree, environ_of, run_tests

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")

SOURCE = '''"""Counts parcels."""

from collections.abc import Iterable
from typing import Final

from leafcuttr_sdk import HealthCheck, Plugin, Setting, Type
from leafcuttr_sdk.admin import Finding
from leafcuttr_sdk.broker import Broker

PLUGIN: Final = Plugin(
    name="parcels", api_version=1, summary="Counts parcels", enabled_by="lc.parcels.enable", extra="parcels",
    modules=("click",),
)


def leafcuttr_register_settings() -> Iterable[Setting]:
    yield Setting("lc.parcels.enable", Type.BOOLEAN, False, "Whether parcels are counted.")


def leafcuttr_register_health_checks(broker: Broker) -> Iterable[HealthCheck]:
    yield HealthCheck("parcels", "Parcels are counted.", lambda: Finding(True))
'''
WITHOUT_EXTRA = SOURCE.replace(' extra="parcels",\n    modules=("click",),', "").replace(
    "parcels", "plain-talk"
)
TESTS = (
    "tests/imports/test_bundled.py",
    "tests/plugins/test_bundled.py",
    "tests/plugins/test_settings_page.py",
)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file.name}: {old}"
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The copy, with the plugins in the three places."""
    tree = copy_tree(tmp_path / "tree")
    package = tree / "plugins" / "leafcuttr_parcels"
    package.mkdir()
    (package / "__init__.py").write_text(SOURCE)
    (package / "counting.py").write_text('"""Imported when it is needed."""\n')
    other = tree / "plugins" / "leafcuttr_plain_talk"
    other.mkdir()
    (other / "__init__.py").write_text(WITHOUT_EXTRA)
    project = tree / "pyproject.toml"
    entries = 'http = "leafcuttr_http"\nparcels = "leafcuttr_parcels"\nplain-talk = "leafcuttr_plain_talk"\n'
    edit(project, 'http = "leafcuttr_http"\n', entries)
    edit(
        project,
        "[project.optional-dependencies]\n",
        '[project.optional-dependencies]\nparcels = ["click>=8.1"]\n',
    )
    return tree


@pytest.fixture
def site(tree: Path, tmp_path: Path) -> Path:
    """What its wheel installs, as metadata: the modules come from the tree."""
    with zipfile.ZipFile(build_wheel(tree, tmp_path)) as wheel:
        names = wheel.namelist()
        assert {"leafcuttr_parcels/__init__.py", "leafcuttr_parcels/counting.py"} <= set(names)
        assert {name.partition("/")[0] for name in names if not name.startswith("leafcuttr-")} == {
            "leafcuttr",
            "leafcuttr_filters",
            "leafcuttr_forward",
            "leafcuttr_http",
            "leafcuttr_mqtt",
            "leafcuttr_parcels",
            "leafcuttr_plain_talk",
            "leafcuttr_registry",
            "leafcuttr_sdk",
            "leafcuttr_spark",
            "pyspark_leafcuttr.py",
        }
        metadata = [name for name in names if name.startswith("leafcuttr-")]
        wheel.extractall(tmp_path / "site", metadata)
    (about,) = (tmp_path / "site").glob("*/METADATA")
    assert "Provides-Extra: parcels\n" in about.read_text()
    return tmp_path / "site"


def outcomes(tree: Path, site: Path) -> tuple[Mapping[str, str], str]:
    """How each test ended, by its name, and all that was said."""
    done = run_tests(tree, "-rA", *TESTS, first=(site,))
    found = re.findall(r"^(PASSED|FAILED|ERROR) \S+::(\S+)", done.stdout, re.MULTILINE)
    return {name: outcome for outcome, name in found}, done.stdout


@pytest.mark.long
def test_everything_follows_or_is_named(tree: Path, site: Path) -> None:
    found, said = outcomes(tree, site)
    failed = {name for name, outcome in found.items() if outcome != "PASSED"}
    assert failed == {
        "test_all_has_every_extra",
        "test_it_has_a_page_that_can_be_found[parcels]",
        "test_it_has_a_page_that_can_be_found[plain-talk]",
        "test_the_list_of_plugins_is_that_of_the_code",
        "test_the_page_is_that_of_the_tables",
        "test_every_bundled_plugin_is_on_it",
    }, said
    assert found["test_it_keeps_its_contracts[parcels]"] == "PASSED"
    assert found["test_it_keeps_its_contracts[plain-talk]"] == "PASSED"
    assert found["test_its_package_and_its_extra_are_named_as_it_is[parcels]"] == "PASSED"
    assert "['parcels'] == []" in said
    assert "docs/how-to/parcels.md is missing" in said
    assert "run: python -m leafcuttr.plugins.bundled_page > docs/reference/plugins.md" in said
    assert "run: python -m leafcuttr.plugins.settings_page > docs/reference/settings.md" in said

    edit(
        tree / "pyproject.toml",
        'all = ["leafcuttr[forward,http,mqtt,registry,security]"]',
        'all = ["leafcuttr[forward,http,mqtt,registry,security,parcels]"]',
    )
    (tree / "docs" / "how-to" / "parcels.md").write_text("# Count parcels\n")
    (tree / "docs" / "how-to" / "plain-talk.md").write_text("# Talk\n")
    edit(
        tree / "mkdocs.yml",
        "      - Produce over HTTP: how-to/http.md\n",
        "      - Produce over HTTP: how-to/http.md\n      - Count parcels: how-to/parcels.md\n"
        "      - Talk: how-to/plain-talk.md\n",
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    page = (tree / "docs" / "contributing.md").read_text(encoding="utf-8").partition("## Add a plugin")[2]
    for line in re.findall(r"^(python -m \S+ > \S+)$", page.partition("\n## ")[0], re.MULTILINE):
        subprocess.run(
            ["sh", "-ec", line], cwd=tree, env={**environ_of(tree, site), "PATH": path}, check=True
        )
    found, said = outcomes(tree, site)
    assert {name for name, outcome in found.items() if outcome != "PASSED"} == set(), said


@pytest.mark.long
def test_what_it_may_not_import_and_a_broken_contract_are_named(tree: Path, site: Path) -> None:
    package = tree / "plugins" / "leafcuttr_parcels"
    (package / "counting.py").write_text(
        "def count() -> None:\n    import leafcuttr_http.errors\n    from leafcuttr import errors\n"
    )
    edit(package / "__init__.py", "lambda: Finding(True)", "lambda: Finding(1 / 0 > 0)")
    edit(
        tree / "sdk" / "leafcuttr_sdk" / "cli.py",
        "if TYPE_CHECKING:\n",
        "if TYPE_CHECKING:\n    import leafcuttr_parcels\n",
    )
    found, said = outcomes(tree, site)
    assert found["test_no_plugin_imports_another_or_the_broker_and_nothing_imports_a_plugin"] == "FAILED"
    for line in (
        "leafcuttr_parcels.counting imports leafcuttr_http.errors",
        "leafcuttr_parcels.counting imports leafcuttr.errors",
        "leafcuttr_sdk.cli imports leafcuttr_parcels",
    ):
        assert line in said, said
    assert found["test_it_keeps_its_contracts[parcels]"] == "FAILED"
    assert "look raised ZeroDivisionError" in said
