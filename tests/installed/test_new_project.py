"""What `leafcuttr plugins new` writes is a whole project: it is built and installed, its tests and the checks pass."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from support.installed import Environment, build_wheel


@pytest.fixture(scope="module")
def project(own: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written by the installed command, built and installed beside it."""
    folder = tmp_path_factory.mktemp("new")
    said = own.run("leafcuttr", "plugins", "new", "parcel-watch", cwd=folder)
    assert said.splitlines()[0] == "wrote the plugin parcel-watch: 11 files in parcel-watch"
    wheel = build_wheel(folder / "parcel-watch", folder)
    with zipfile.ZipFile(wheel) as files:
        assert "leafcuttr_parcel_watch/py.typed" in files.namelist()
    own.pip_install("--no-deps", str(wheel))
    return folder / "parcel-watch"


@pytest.mark.long
def test_its_tests_pass(own: Environment, project: Path) -> None:
    """With nothing but what is installed: pytest finds the fixture by its entry point, the broker the plugin by its."""
    said = own.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project)
    assert "8 passed" in said


def test_it_is_enabled(own: Environment, project: Path) -> None:
    listed = json.loads(own.run("leafcuttr", "plugins", "list", "--json", cwd=project))
    (found,) = (one for one in listed if one["name"] == "parcel-watch")
    assert (found["state"], found["distribution"], found["version"]) == (
        "enabled",
        "leafcuttr-parcel-watch",
        "0.1.0",
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["parcel-watch", "greenhouse"])
def test_what_is_installed_keeps_its_contracts(
    name: str, own: Environment, project: Path, tmp_path: Path
) -> None:
    said = own.run("leafcuttr", "plugins", "check", name, cwd=tmp_path)
    assert f"service {name}: ok" in said
    assert said.endswith(" checks, 0 problems\n")
