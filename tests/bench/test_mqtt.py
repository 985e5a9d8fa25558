"""The program that measures MQTT: its load program against mosquitto, and its table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bench import mqtt


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("mosquitto"), reason="not installed: mosquitto")
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_each_row_runs_against_mosquitto(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "told.json"
    words = ["--runs", "1", "--seconds", "0.5", "--only", "mosquitto", "--json", str(told)]
    monkeypatch.setattr("sys.argv", ["mqtt.py", *words])
    with pytest.raises(SystemExit) as ended:
        mqtt.main()
    found = json.loads(told.read_text())
    assert (ended.value.code, found["failed"]) == (0, [])
    assert list(found["rows"]) == [row.name for row in mqtt.ROWS]
    assert "| QoS 1, 8 connections, window 100 | messages/s | - |" in capsys.readouterr().out


def test_the_table_has_medians_and_the_median_of_the_ratios() -> None:
    ours = [{"messages/s": value} for value in (150.0, 400.0, 130.0)]
    theirs = [{"messages/s": value} for value in (100.0, 200.0, 100.0)]
    rows = list(mqtt.table({"qos1-window": {"leafcuttr": ours, "mosquitto": theirs}}))
    assert rows[2:] == [
        "| QoS 1, 8 connections, window 100 | messages/s | 150 | 100 | 1.50 | ratio at least 1.3: yes |"
    ]


def test_what_is_too_slow_is_said() -> None:
    slow = {"leafcuttr": [{"p99, ms": 11.0}], "mosquitto": [{"p99, ms": 1.0}]}
    lines = list(mqtt.table({"latency": slow}))
    assert lines[-1].endswith("| 11 | 1 | 11.00 | at most 10: **no** |")
    assert mqtt.status(lines, []) == mqtt.status([], ["latency, leafcuttr: it did not start"]) == 1
    assert mqtt.status(list(mqtt.table({"latency": {"leafcuttr": [{"p99, ms": 9.0}]}})), []) == 0
