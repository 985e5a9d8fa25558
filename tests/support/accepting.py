"""Settings that are refused without each other: with all of them a refusal is a failure of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from leafcuttr.errors import ConfigError, StartError


@contextmanager
def taken(*refusals: type[Exception]) -> Iterator[None]:
    """Around a start, or around a change that raises `refusals`; a group of such exceptions counts as one."""
    kinds: tuple[type[Exception], ...] = (ConfigError, StartError, *refusals)
    try:
        yield
    except* kinds as refused:
        pytest.fail(f"what is given is refused: {refused.exceptions}")
