"""The rights that the page of ACLs says programs need are those with which tests run them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.needed_rights import (
    CONNECT,
    CONNECTOR,
    CONNECTORS,
    MIRROR_SOURCE,
    MIRROR_TARGET,
    SPARK,
    STREAMS,
    Need,
    table,
)

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "acls.md"


ALL = {
    "Streams": STREAMS,
    "Connect": CONNECT,
    "connectors": CONNECTORS,
    "MirrorMaker's source": MIRROR_SOURCE,
    "MirrorMaker's target": MIRROR_TARGET,
    "Spark": SPARK,
    "its own": CONNECTOR,
}


@pytest.mark.parametrize("needs", list(ALL.values()), ids=list(ALL))
def test_the_page_has_them(needs: tuple[Need, ...]) -> None:
    assert f"\n\n{table(needs)}\n\n" in PAGE.read_text()
