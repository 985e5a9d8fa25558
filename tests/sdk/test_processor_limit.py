"""What a part of a function may take of the processor, and no more."""

from __future__ import annotations

import re
import signal
import time

import pytest

from leafcuttr_sdk import processor_limit


def test_what_takes_too_long_is_ended_and_the_handler_given_back() -> None:
    before = signal.getsignal(signal.SIGPROF)
    with pytest.raises(processor_limit.ProcessorLimitError), processor_limit.processor_limit(0.02):
        re.match("(a+)+$", "a" * 40 + "!")
    assert signal.getsignal(signal.SIGPROF) is before
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_what_others_take_of_the_processor_does_not_count() -> None:
    with processor_limit.processor_limit(0.05):
        time.sleep(0.1)  # real time, of which this process uses nothing


def test_libraries_that_catch_exceptions_do_not_go_on() -> None:
    assert not issubclass(processor_limit.ProcessorLimitError, Exception)


def test_an_alarm_that_comes_late_raises_nothing() -> None:
    processor_limit._ring(signal.SIGPROF, None)


def test_an_alarm_that_comes_early_is_set_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's timer counts ticks, `process_time` what the process had of them."""
    clock = [7.0]
    monkeypatch.setattr(processor_limit, "process_time", lambda: clock[0])
    before = signal.signal(signal.SIGPROF, signal.SIG_IGN)
    try:
        with processor_limit.processor_limit(50.0):
            clock[0] = 46.5
            processor_limit._ring(signal.SIGPROF, None)
            assert signal.getitimer(signal.ITIMER_PROF)[0] == pytest.approx(10.5, abs=0.5)
            clock[0] = 57.0
            with pytest.raises(processor_limit.ProcessorLimitError):
                processor_limit._ring(signal.SIGPROF, None)
        assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGPROF, before)
