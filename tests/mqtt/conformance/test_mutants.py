"""The list of `nox -s mqtt-mutants` fits the plugin and the tests as they are."""

from __future__ import annotations

import ast

import pytest

from mqtt.conformance.mutants import FOLDER, PLUGIN, Mutant, read_mutants

MUTANTS = read_mutants()


def test_there_are_fifty_at_least() -> None:
    assert len({each.name for each in MUTANTS}) == len(MUTANTS) >= 50


@pytest.mark.one_in(6)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_it_can_be_made(mutant: Mutant) -> None:
    """Its text is in the module once, what comes of it is Python, and its tests are there."""
    source = (PLUGIN / mutant.module).read_text()
    assert ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source))
    for test in mutant.tests:
        name, _, function = test.partition("::")
        assert f"\ndef {function}(" in (FOLDER / name).read_text()
