"""One round over one log, as far as test_cleaner.py does not show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from leafcuttr.log.cleaner.cleaner import Cleaner
from leafcuttr.log.cleaner.round import CleaningRound
from leafcuttr.log.log import Log

MakeLog = Callable[..., Log]
MakeCleaner = Callable[..., Cleaner]


async def test_a_new_limit_counts_though_the_round_was_planned_before(
    dirty_log: MakeLog, make_cleaner: MakeCleaner, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaner, plan = make_cleaner(dirty_log(), log_cleaner_io_max_bytes_per_second="10"), CleaningRound._plan

    def change_after(*words: Any) -> Any:
        planned = plan(*words)
        unlimited = {"log.cleaner.io.max.bytes.per.second": "1E300"}
        trio.from_thread.run_sync(cleaner._settings.replace_dynamic, unlimited)
        return planned

    monkeypatch.setattr(CleaningRound, "_plan", change_after)
    with trio.fail_after(60):
        assert await cleaner.clean_due() == 1
    assert cleaner.rounds == 1
