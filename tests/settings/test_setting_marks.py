"""The session `settings_marks` itself: what it takes for an assertion of the test's own, and which ways it closes."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.run_setting_marks import run
from support.setting_defaults import is_about
from support.setting_verdicts import Verdict

SAMPLES = Path(__file__).parent / "samples_of_marks.py"

OF_THE_END = {
    "test_asserts": Verdict.ASSERTS,
    "test_expects_an_exception": Verdict.ASSERTS,
    "test_asserts_in_a_group": Verdict.ASSERTS,
    "test_asserts_and_crashes_in_a_group": Verdict.ELSEWHERE,
    "test_of_a_child": Verdict.ASSERTS,
    "test_passes": Verdict.PASSES,
    "test_is_never_given": Verdict.NEVER_GIVEN,
    "test_gives_the_default": Verdict.NEVER_GIVEN,
    "test_crashes": Verdict.ELSEWHERE,
    "test_crashes_in_the_product": Verdict.ELSEWHERE,
    "test_is_skipped": Verdict.SKIPPED,
    "test_has_a_fixture_that_fails": Verdict.FIXTURE,
}
# Each of these waits until a bound is reached, some of them twice.
OF_A_WAIT = {
    "test_awaits": Verdict.AWAITS,
    "test_awaits_what_never_comes": Verdict.TOO_SLOW,
    "test_runs_into_a_bound": Verdict.ELSEWHERE,
}
OF_THE_WAY = {
    "test_started_with_hours": "at the start",
    "test_changed_while_it_runs[1]": "of this broker",
    "test_changed_while_it_runs[]": "of all brokers",
    "test_created_with": "of a topic",
    "test_altered": "of a topic",
    "test_read_back_after_a_restart": "of a topic",
    "test_made_by_hand": "of a topic",
}


@pytest.mark.long
@pytest.mark.parametrize("expected", [OF_THE_END, pytest.param(OF_A_WAIT, marks=pytest.mark.long)])
def test_how_a_test_may_end(expected: dict[str, Verdict]) -> None:
    ends = run("num.partitions", [f"{SAMPLES}::{name}" for name in expected])
    assert {end.test.partition("::")[2]: end.verdict for end in ends} == expected


@pytest.mark.long
def test_every_way_is_closed() -> None:
    names = {name.partition("[")[0]: None for name in OF_THE_WAY}
    ends = run("retention.ms", [f"{SAMPLES}::{name}" for name in names])
    assert {end.test.partition("::")[2]: end.ways for end in ends} == OF_THE_WAY
    assert {end.verdict for end in ends} == {Verdict.ASSERTS}


def test_a_setting_that_does_not_exist_is_an_error_of_the_run() -> None:
    (end,) = run("num.partition", [f"{SAMPLES}::test_asserts"])
    assert end.verdict is None
    assert "num.partition is no setting" in end.why


@pytest.mark.parametrize(
    ("setting", "name", "about"),
    [
        ("retention.ms", "retention.ms", True),
        ("retention.ms", "log.retention.hours", True),
        ("log.retention.hours", "log.retention.ms", False),
        ("retention.ms", "retention.bytes", False),
        ("max.connections", "listener.name.in.max.connections", True),
        ("max.connections", "max.connections.per.ip", False),
        ("lc.filters", "lc.filters.orders-*", True),
        ("lc.filters", "lc.filters.dead.letter.topic", False),
    ],
)
def test_what_a_setting_can_be_given_by(setting: str, name: str, about: bool) -> None:
    assert is_about(setting)(name) is about
