"""The wheels of this tree and of the sample plugin, installed once for all tests here."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.installed import ROOT, SAMPLE, Environment, build_wheel


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Ours, and the sample plugin's."""
    into = tmp_path_factory.mktemp("wheels")
    return {"leafcuttr": build_wheel(ROOT, into), "greenhouse": build_wheel(SAMPLE, into)}


@pytest.fixture(scope="session")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Both wheels, what they need from the index, and pytest."""
    environment = Environment.create(tmp_path_factory.mktemp("installed") / "venv")
    environment.pip_install(*map(str, wheels.values()), "pytest>=8")
    environment.offer_pip()
    return environment
