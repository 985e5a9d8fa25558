"""The program that measures the registry runs on the tree as it is."""

from __future__ import annotations

import argparse
import os
import shutil

import pytest

from bench import registry


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[float]]:
    empty: dict[str, list[float]] = {}
    monkeypatch.setattr(registry, "figures", empty)
    monkeypatch.setattr(registry, "REGISTRATIONS", 16)
    monkeypatch.setattr(registry, "CHECKS", 2)
    monkeypatch.setattr(registry, "BATCHES", 6)
    monkeypatch.setattr(registry, "ROUNDS", 1)
    return empty


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("reads", "GET versions/latest, of the bare application"),
        ("writes", "check of 200 fields, a new text, ms CPU"),
        ("ready", "ready with 8 versions, s"),
        ("validation", "validation id, throughput of off"),
        ("beside", "produce, throughput with an idle registry of without"),
        pytest.param("start", "start, registry off, resident MB", marks=pytest.mark.long),
    ],
)
def test_each_part_notes_its_figures(part: str, name: str, figures: dict[str, list[float]]) -> None:
    if part == "reads" and not shutil.which("wrk"):
        pytest.skip("there is no wrk")
    registry.PARTS[part](argparse.Namespace(seconds=1, runs=1, subjects=2))
    assert figures[name][0] > 0 and all(len(each) == 1 for each in figures.values())


def test_processor_time_of_a_process_and_of_those_below_it() -> None:
    assert 0 < registry.own_cpu_s(os.getpid()) <= registry.cpu_s(os.getpid()) + 0.1
