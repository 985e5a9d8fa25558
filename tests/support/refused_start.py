"""A broker that does not start: the line with which it says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import pytest

from leafcuttr.errors import StartError


def refusal(serve: Callable[..., AbstractContextManager[object]], settings: Mapping[str, str]) -> str:
    """With these settings, by the fixture `serve`."""
    with (
        pytest.RaisesGroup(StartError, allow_unwrapped=True, flatten_subgroups=True) as caught,
        serve(settings),
    ):
        pass
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert "\n" not in str(error)
    return str(error)
