"""What a broker has said in a test's process."""

from __future__ import annotations

import pytest

_OF_THE_MACHINE = "leafcuttr.plugins.services.watchdog"
"""Who says that something has held the loop, which a busy machine makes true of anything."""


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines that were logged, without those on how busy the machine is."""
    return [record.getMessage() for record in caplog.records if record.name != _OF_THE_MACHINE]
