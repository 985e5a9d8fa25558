"""The hooks that the SDK documents are those that the host calls."""

from __future__ import annotations

import inspect

import pytest

import leafcuttr_sdk
from leafcuttr.plugins import registration
from leafcuttr_sdk import hooks


def test_every_hook_of_the_sdk_is_called_and_no_other() -> None:
    documented = {name for name, _ in inspect.getmembers(hooks, inspect.isfunction)}
    assert documented == set(registration.RETURNS)


@pytest.mark.parametrize(("hook", "name"), registration.RETURNS.items())
def test_what_a_hook_is_said_to_return_is_what_is_checked(hook: str, name: str) -> None:
    assert inspect.signature(getattr(hooks, hook)).return_annotation == f"Iterable[{name}]"
    assert inspect.isclass(getattr(leafcuttr_sdk, name))
