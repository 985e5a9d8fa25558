"""`leafcuttr schemas` as a person types it, against a registry of its own process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import leafcuttr_registry
from leafcuttr_sdk.testing import CommandResult, run_command
from support.registry import RegistryProcess

(COMMAND,) = leafcuttr_registry.leafcuttr_register_cli_commands()
Schemas = Callable[..., CommandResult]


@pytest.fixture
def schemas(registry: RegistryProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Schemas:
    monkeypatch.setenv("LEAFCUTTR_SCHEMA_REGISTRY_URL", registry.url)
    monkeypatch.chdir(tmp_path)

    def run(*words: str, stdin: str = "") -> CommandResult:
        return run_command(COMMAND, *words, plugin=leafcuttr_registry, stdin=stdin)

    return run
