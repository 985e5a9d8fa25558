"""The program that measures the MQTT codec runs on the tree as it is."""

from __future__ import annotations

import re

import pytest

from bench import mqtt_packets


def test_it_prints_a_row_for_each_case(capsys: pytest.CaptureFixture[str]) -> None:
    mqtt_packets.measure(rounds=1)
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [re.sub(r"\d+ ns", "N ns", row) for row in rows] == [
        f"| {name} | N ns |" for name in mqtt_packets.CASES
    ]
