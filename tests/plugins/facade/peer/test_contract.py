"""This broker in process keeps the contract of peers."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from trio.testing import MockClock

from leafcuttr_sdk.testing.peer_checks import PROMISES, peer_report
from plugins.facade.peer.conftest import Live

Run = Callable[..., AbstractAsyncContextManager[Live]]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("promise", list(PROMISES))
async def test_a_promise(run: Run, autojump_clock: MockClock, promise: str) -> None:
    async with run() as live:
        report = await peer_report(live.peer, delete_topic=live.view.topics.delete, only=frozenset({promise}))
        assert [each.name for each in report.checks] == [promise]
        report.raise_problems()
