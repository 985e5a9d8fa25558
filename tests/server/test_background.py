"""What goes on by itself goes on through failures, and says them once."""

import errno
import logging
import os

import pytest
import trio
from trio.testing import MockClock

from leafcuttr.server import background


async def test_a_step_that_the_disk_refuses_is_named_once(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    outcomes: list[Exception | None] = [full, full, full, None, full, ValueError("a bug"), None, None]
    taken = 0
    over = trio.Event()

    async def step() -> None:
        nonlocal taken
        taken += 1
        if taken == len(outcomes):
            over.set()
        outcome = outcomes[taken - 1]
        if outcome is not None:
            raise outcome

    with caplog.at_level(logging.INFO):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(background._every, "the step", lambda: 1.0, step)
            await over.wait()
            nursery.cancel_scope.cancel()
    said = [(record.levelname, record.getMessage(), record.exc_info is not None) for record in caplog.records]
    refused = ("ERROR", "the step failed, it is tried again: No space left on device", False)
    assert said == [
        refused,
        ("INFO", "the step works again", False),
        refused,
        ("ERROR", "the step failed; it is tried again", True),
        ("INFO", "the step works again", False),
    ]
