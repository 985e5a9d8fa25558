"""The wheels of this tree and of the sample plugin, built and installed once for all tests here."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.installed import ROOT, SAMPLE, Environment, build_wheel
from support.made_once import made_once


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Ours, and the sample plugin's."""

    def build(into: Path) -> None:
        for project in (ROOT, SAMPLE):
            build_wheel(project, into)

    built = made_once(tmp_path_factory, "wheels", build)
    return {
        name: next(built.glob(f"{distribution}-*.whl"))
        for name, distribution in (("leafcuttr", "leafcuttr"), ("greenhouse", "leafcuttr_greenhouse"))
    }


@pytest.fixture(scope="session")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Both wheels, what they need from the index, and pytest. No test changes it: see `own`."""

    def install(folder: Path) -> None:
        # Compiled is what is imported, when it is.
        Environment.create(folder).pip_install("--no-compile", *map(str, wheels.values()), "pytest>=8")

    return Environment(made_once(tmp_path_factory, "installed", install))


@pytest.fixture(scope="module")
def own(installed: Environment, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The same, of a module that installs more."""
    environment = installed.copy(tmp_path_factory.mktemp("own") / "venv")
    environment.offer_pip()
    return environment
