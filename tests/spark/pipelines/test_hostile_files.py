"""Files that anybody may have written: each has a verdict in lines, within bounded time and memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_spark.pipelines.checking.whole import check_pipeline
from leafcuttr_spark.pipelines.drawing import as_mermaid, as_text, graph_of
from leafcuttr_spark.pipelines.errors import PipelineFaultsError
from leafcuttr_spark.pipelines.reading.loading import parse_pipeline
from spark.pipelines.written import HEAD, SINK, faults_of
from support.gates_slice import sampled

SAMPLES = [path.read_text() for path in sorted((Path(__file__).parents[1] / "samples").glob("*.yaml"))]
WORDS = st.sampled_from(
    [
        *(
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "- ",
            "*a",
            "&a ",
            "<<",
            "${",
            "}",
            "'",
            '"',
            "\n",
            "  ",
            "null",
            "~",
            "!!int ",
        ),
        *(
            "?",
            "from",
            "filter",
            "on",
            "by",
            "window",
            "topic",
            "table",
            "sum(",
            ")",
            "AND",
            "select",
            "9999-12-31",
        ),
        *("\x00", "é"),
    ]
)
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), WORDS), min_size=1, max_size=6)


def verdict(text: str) -> None:
    """It is read, checked and drawn, or is refused with lines."""
    try:
        pipeline, _ = parse_pipeline(text.encode(), Path("p.yaml"), needs_secrets=False)
        faults = check_pipeline(pipeline)
        if not any(not fault.note for fault in faults):
            assert [*as_text(graph_of(pipeline))] and [*as_mermaid(graph_of(pipeline))]
    except PipelineFaultsError as error:
        faults = [*error.faults]
    for fault in faults:
        line = fault.text("p.yaml")
        assert "\n" not in line and len(line) < 2000, line


@settings(max_examples=sampled(100), deadline=None)
@given(st.sampled_from(SAMPLES), EDITS)
def test_a_sample_with_some_edits(sample: str, edits: list[tuple[float, int, str]]) -> None:
    for place, cut, word in edits:
        at = int(place * len(sample))
        sample = sample[:at] + word + sample[at + cut :]
    verdict(sample)


@settings(max_examples=sampled(100), deadline=None)
@given(st.lists(WORDS, max_size=40).map("".join), st.text(max_size=60))
def test_any_text(words: str, text: str) -> None:
    verdict(words)
    verdict(text)
    verdict(f"{HEAD}sources: {{a: {{topic: a}}}}\nsteps:\n  - filter: '{text}'\n  - {words}\n{SINK}")


MANY = 2500


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "text",
    [
        HEAD + "sources: {a: {topic: a}}\n" + SINK + "steps:\n" + "- {filter: x}\n" * MANY,
        HEAD + "sources: {a: {topic: a}}\n" + SINK + "steps:\n" + "- {union: [a, a]}\n" * MANY,
        HEAD + "sources:\n" + "".join(f"  s{n}: {{topic: t}}\n" for n in range(MANY)) + SINK,
        HEAD
        + "sources: {a: {topic: a}}\nsinks:\n"
        + "".join(f"  s{n}: {{from: b, topic: t}}\n" for n in range(MANY)),
        HEAD
        + "sources: {a: {topic: a}}\n"
        + SINK
        + "variables:\n"
        + "".join(f"  v{n}: ${{v{n + 1}}}\n" for n in range(MANY)),
        HEAD + "sources: {a: {topic: a}}\n" + SINK + f"steps: [{{filter: '{'(' * 9000}'}}]\n",
        HEAD + "sources: {a: {topic: a}}\n" + SINK + f"steps: [{{map: {{x: '{'a.' * 9000}b'}}}}]\n",
        HEAD
        + "sources: {a: {topic: a, value: {format: json, columns: '"
        + "a ARRAY<" * 9000
        + "'}}}\n"
        + SINK,
        HEAD + "sources: {a: {topic: a, start: {timestamp: 9999-12-31T23:59:59Z}}}\n" + SINK,
        HEAD + "sources: {a: {topic: a, start: {offsets: {0: 99999999999999999999}}}}\n" + SINK,
        HEAD + "sources: {a: {topic: a, watermark: 99999999999999999999d}}\n" + SINK,
    ],
    ids=[
        "steps",
        "unions",
        "sources",
        "sinks",
        "variables",
        "brackets",
        "dots",
        "types",
        "9999",
        "offset",
        "days",
    ],
)
def test_large_files(text: str) -> None:
    verdict(text)
    assert len(faults_of(text)) <= 102
