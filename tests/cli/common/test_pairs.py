"""`KEY=VALUE` words."""

from __future__ import annotations

import click
import pytest

from leafcuttr.cli.common.pairs import pairs


def test_pairs() -> None:
    assert pairs("-c", ["a=1", "b=c=d", "e="]) == {"a": "1", "b": "c=d", "e": ""}
    for wrong in ("a", "=1"):
        with pytest.raises(click.UsageError, match="expected KEY=VALUE"):
            pairs("-c", [wrong])
