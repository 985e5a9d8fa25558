"""Paths, and the targets of requests."""

from __future__ import annotations

import pytest

from leafcuttr.server.admin.router import parse_target


def test_a_target_with_very_many_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="fields"):
        parse_target("/x?" + "a=1&" * 2000)
