"""Plots of batches."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from leafcuttr_spark.operating.history import Point
from leafcuttr_spark.operating.plots import WIDTH, _rounded_up, svg_of

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def lines(svg: str) -> list[str]:
    return [one.get("points") or "" for one in ElementTree.fromstring(svg).iter(f"{SVG}polyline")]


def test_each_value_is_a_line() -> None:
    points = [Point(1000 * n, n, 100 * n, 0.5, 10 - n, float(n), n, 0) for n in range(1, 6)]
    svg = svg_of("a <b>", points)
    found = texts(svg)
    assert found[0] == "a <b>: 5 batches, 1970-01-01 00:00:01 to 1970-01-01 00:00:05 UTC"
    titles = {"rows a second", "lag, records", "lag, seconds", "seconds of a batch", "rows of state"}
    assert titles <= set(found)
    assert "dead letters of the run" not in found
    assert len(lines(svg)) == 5
    # The largest is 1000 a second, at the right edge and the top.
    assert "1000" in found
    last = lines(svg)[0].split()[-1].split(",")
    assert float(last[0]) == WIDTH - 16
    assert float(last[1]) == 34 + 26


def test_nothing_and_one_batch() -> None:
    assert texts(svg_of("p", []))[0] == "p: no batches"
    svg = svg_of("p", [Point(1000, 0, 5, 0.0)])
    assert texts(svg)[0].startswith("p: 1 batch, ")
    assert lines(svg) == []
    one = svg_of("p", [Point(1000, 0, 5, 1.0)])
    assert len(list(ElementTree.fromstring(one).iter(f"{SVG}circle"))) == 2


def test_many_batches_are_as_many_points_as_there_are_pixels() -> None:
    svg = svg_of("p", [Point(n, n, n, 1.0) for n in range(5000)])
    assert max(len(line.split()) for line in lines(svg)) <= WIDTH
    assert len(svg) < 100_000


def test_times_that_go_back_stay_within() -> None:
    svg = svg_of("p", [Point(5000, 0, 1, 1.0), Point(9000, 1, 1, 1.0), Point(1000, 2, 1, 1.0)])
    xs = [float(x) for line in lines(svg) for x in re.findall(r"([0-9.]+),", line)]
    assert all(80 <= x <= WIDTH - 16 for x in xs)


@pytest.mark.parametrize(
    ("value", "most"),
    [(0, 1), (1, 1), (1.1, 2), (3, 5), (7, 10), (99, 100), (101, 200), (0.03, 0.05), (2, 2)],
)
def test_the_top_of_a_plot(value: float, most: float) -> None:
    assert _rounded_up(value) == pytest.approx(most)
