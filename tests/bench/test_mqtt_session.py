"""The program that measures the state of MQTT sessions runs on the tree as it is."""

from __future__ import annotations

import re

import pytest

from bench import mqtt_session


def test_it_prints_a_row_for_each_case(capsys: pytest.CaptureFixture[str]) -> None:
    mqtt_session.measure(rounds=1)
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [re.sub(r"\d+ ns", "N ns", row) for row in rows] == [
        f"| {name} | N ns |" for name in mqtt_session.CASES
    ]
