"""The graph of frames: unknown ones, circles, what nothing reads, and what streams cannot do."""

from __future__ import annotations

import pytest

from leafcuttr_spark.pipelines.checking.whole import check_pipeline
from leafcuttr_spark.pipelines.model import Pipeline, Source, TopicOrigin
from spark.pipelines.written import HEAD, checked

JSON = "value: {format: json, columns: {id: string, amount: double}}"
SOURCES = f"""\
sources:
  orders: {{topic: orders, {JSON}, watermark: 10s}}
  payments: {{topic: payments, value: {{format: json, columns: {{id: string, paid: double}}}}, watermark: 10s}}
  late: {{topic: late, value: {{format: json, columns: {{id: string, late: double}}}}}}
  customers: {{topic: customers, value: {{format: json, columns: {{code: string, name: string}}}}, table: code}}
"""
SINKS = (
    "sinks: {o: {from: orders, topic: a}, p: {from: payments, topic: b}, l: {from: late, topic: c},"
    " c: {from: customers, topic: d}}\n"
)


def said(text: str, *, notes: bool = False) -> list[str]:
    return [fault.text("") for fault in checked(text) if fault.note is notes]


def of_steps(*steps: str, sinks: str = SINKS, head: str = HEAD) -> str:
    text = head + SOURCES + "steps:\n" + "".join(f"  - {step}\n" for step in steps)
    return text + sinks.replace("}}\n", "}, last: {topic: last}}\n")


@pytest.mark.parametrize(
    ("steps", "what"),
    [
        (
            ("{from: ordes, filter: 1 = 1}",),
            "steps[0] (filter_1): there is no frame ordes: did you mean orders?; there",
        ),
        (
            ("{filter: 1 = 1}",),
            "steps[0] (filter_1): the key from is missing: which of the sources orders, payments, l",
        ),
        (
            ("{name: a, from: b, filter: 1 = 1}", "{name: b, from: a, filter: 1 = 1}"),
            "steps[0] (a): it reads b of steps[1] (b), which reads what it makes: a circle",
        ),
        (("{name: a, from: a, filter: 1 = 1}",), "steps[0] (a): it reads its own result a: a circle"),
        (
            ("{name: a, from: b, filter: 1 = 1}", "{name: b, from: orders, filter: 1 = 1}"),
            "steps[0] (a): b is made by steps[1] (b), which comes later: a step reads sources and steps before it",
        ),
        (
            ("{name: a, from: orders, filter: 1 = 1}", "{name: A, from: orders, filter: 1 = 1}"),
            "steps[1] (A): steps[0] (a) has the name A already",
        ),
        (
            ("{name: B, from: orders, filter: 1 = 1}", "{name: b, from: orders, filter: 1 = 1}"),
            "steps[1] (b): steps[0] (B) has the name b already",
        ),
        (
            ("{name: Orders, from: orders, filter: 1 = 1}",),
            "steps[0] (Orders): the source orders has the name Orders a",
        ),
        (
            ("{from: orders, branch: {x: amount > 1, orders: amount < 1}}", "{from: x, filter: 1 = 1}"),
            "steps[0] (branch_1): the source orders has the name orders already",
        ),
        (
            ("{name: b, from: orders, branch: {x: amount > 1, y: amount < 1}}", "{from: b, filter: 1 = 1}"),
            "steps[1] (filter_2): b is a step with branches; the frames are x, y",
        ),
        (
            ("{from: orders, branch: {x: amount > 1, y: amount < 1}}", "{filter: 1 = 1}"),
            "steps[1] (filter_2): the key from is missing: the step before has the branches x, y",
        ),
        (
            ("{from: late, count: {by: id, window: {tumbling: 1m}, emit: final}}",),
            "steps[0] (count_1): count.window: it needs a watermark, without which no window ends; the source"
            " late has none",
        ),
        (
            ("{from: orders, join: {with: customers, on: {id: code}, within: 1m}}",),
            "steps[0] (join_1): customers is a t",
        ),
        (
            ("{from: customers, join: {with: orders, on: {code: id}, within: 1m}}",),
            "steps[0] (join_1): its left side is",
        ),
        (
            ("{from: orders, join: {with: late, on: id, within: 1m}}",),
            "steps[0] (join_1): a join of streams needs a watermark on both sides, without which its state grows for",
        ),
        (
            ("{from: orders, lookup: {table: payments, on: id}}",),
            "steps[0] (lookup_1): payments is a stream: use join,",
        ),
        (
            ("{from: customers, count: code}",),
            "steps[0] (count_1): customers is a table: count is for streams",
        ),
        (
            ("{from: customers, filter: name = 'x'}", "{count: code}"),
            "steps[1] (count_2): filter_1 is a table: count is",
        ),
    ],
)
def test_what_is_wrong_with_the_graph(steps: tuple[str, ...], what: str) -> None:
    found = said(of_steps(*steps))
    assert any(line.startswith(what) for line in found), found


def test_a_pipeline_in_which_all_is_right_has_no_faults_and_no_notes() -> None:
    text = of_steps(
        "{name: j, from: orders, join: {with: payments, on: id, within: 1m}}",
        "{lookup: {table: customers, on: {id: code}}}",
        "{count: {by: id, window: {tumbling: 1m}, emit: final}}",
    )
    assert checked(text) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "sinks: {a: {from: ordes, topic: a}}\n",
            "sinks.a: there is no frame ordes: did you mean orders?; there are o",
        ),
        ("sinks: {a: {topic: a}}\n", "sinks.a: the key from is missing: which rows; there are "),
        (
            "sinks: {a: {from: orders, topic: a, cluster: hub}}\n",
            "sinks.a: cluster: there is no cluster hub; there are",
        ),
        (
            "sinks: {a: {from: orders, topic: a}, b: {from: late, topic: b, delivery: at-least-once}}\n",
            "sinks.b: delivery: at-least-once, while a has exactly-once: all topics of a pipeline are written together",
        ),
        (
            "clusters: {main: {a: b}, hub: {a: b}}\nsinks: {a: {from: orders, topic: a, cluster: hub}, b: {from:"
            " late, topic: b}}\n",
            "sinks.b: cluster: main, while a has hub: all topics of a pipeline are written together",
        ),
        (
            "clusters: {main: {a: b}, hub: {a: b}}\nsinks: {a: {from: orders, topic: a}}\ndead-letters: {topic:"
            " d, cluster: hub}\n",
            "dead-letters: cluster has to be that of the sinks: all topics of a pipeline are written together",
        ),
        (
            "sinks: {a: {from: orders, topic: a}}\ndead-letters: orders\n",
            "dead-letters: the pipeline reads the topic or",
        ),
        (
            "sinks: {a: {from: orders, topic: a}}\nlate: dead-letters\n",
            "late: dead-letters needs the key dead-letters: ",
        ),
        (
            "sinks: {a: {from: orders, topic: a, value: {format: avro, columns: id}}}\n",
            "sinks.a: value: avro needs schema, a file, or the registry of the pipeline",
        ),
        (
            "sinks: {a: {from: orders, topic: a, value: {format: avro, schema: x.avsc, id: header}}}\n",
            "sinks.a: value: to frame records needs the registry of the pipeline",
        ),
    ],
)
def test_what_is_wrong_with_sinks(text: str, what: str) -> None:
    found = said(HEAD + SOURCES + text)
    assert any(line.startswith(what) for line in found), found


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (
            "{topic: a, value: avro}",
            "sources.a: value: avro needs schema, a file, or the registry of the pipeline",
        ),
        (
            "{topic: a, key: protobuf}",
            "sources.a: key: protobuf needs schema, a file, or the registry of the pipeline",
        ),
        (
            "{topic: a, value: {format: avro, schema: a.avsc, id: payload}}",
            "sources.a: value: records that are framed need the registry of the pipeline",
        ),
        (
            "{file: in.csv}",
            "sources.a: file: a stream of files needs schema: its columns with their types; or is it a t",
        ),
        ("{topic: a, cluster: hub}", "sources.a: cluster: there is no cluster hub; there are main"),
    ],
)
def test_what_is_wrong_with_sources(source: str, what: str) -> None:
    found = said(f"{HEAD}sources: {{a: {source}}}\nsinks: {{o: {{topic: o}}}}\n")
    assert found[0].startswith(what), found


def test_with_several_topics_it_is_not_clear_which_schema_counts() -> None:
    text = (
        "registry: http://localhost:1\nsources: {a: {topics: [a, b], value: avro}}\nsinks: {o: {topic: o}}\n"
    )
    assert said(HEAD + text) == [
        "sources.a: value: subject is needed: with several topics it is not clear whose schema counts"
    ]


@pytest.mark.parametrize(
    ("steps", "what"),
    [
        (("{from: orders, deduplicate: id}",), "without within it remembers each key for ever"),
        (
            ("{from: late, deduplicate: {by: id, within: 1m}}",),
            "without a watermark it remembers each key for ever; the ",
        ),
        (
            ("{name: a, from: orders, filter: 1 = 1}", "{from: orders, filter: 1 = 1}"),
            "no step and no sink reads it",
        ),
    ],
)
def test_what_may_be_meant_is_a_note(steps: tuple[str, ...], what: str) -> None:
    text = of_steps(*steps)
    assert said(text) == []
    found = said(text, notes=True)
    assert len(found) == 1 and found[0].startswith(
        f"steps[0] ({'a' if len(steps) > 1 else steps[0].split()[2][:-1]}"
    )
    assert f": {what}" in found[0]


def test_sources_that_nothing_reads_and_topics_that_are_read_again_are_notes() -> None:
    text = HEAD + SOURCES + "sinks: {a: {from: late, topic: orders}}\n"
    assert said(text, notes=True) == [
        "sources.orders: no step and no sink reads it",
        "sources.payments: no step and no sink reads it",
        "sources.customers: no step and no sink reads it",
        "sinks.a: it writes orders, which the pipeline reads: records may go round for ever",
    ]


def test_a_pipeline_made_in_python_is_checked_too() -> None:
    assert [fault.text("") for fault in check_pipeline(Pipeline("p", {}))] == [
        "sources: there is no source",
        "sinks: there is no sink",
    ]
    pipeline = Pipeline("p", {"a": Source(TopicOrigin(("a",))), "A": Source(TopicOrigin(("b",)))})
    assert "sources: two sources have names that differ in small and large letters only" in [
        fault.text("") for fault in check_pipeline(pipeline)
    ]


def test_tables_and_streams_cannot_be_united() -> None:
    assert "steps[0] (union_1): tables and streams cannot be united" in said(
        of_steps("{union: [orders, customers]}")
    )


def test_a_table_of_a_table_is_a_table() -> None:
    text = of_steps(
        "{name: vip, from: customers, filter: name = 'x'}",
        "{from: orders, lookup: {table: vip, on: {id: code}}}",
    )
    assert said(text) == []


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (
            "{from: orders, count: {by: id, window: {sliding: 1m}}}",
            "count.window: sliding windows keep their state in",
        ),
        (
            "{from: orders, lookup: {table: customers, on: {id: code}}}",
            "lookups keep their state in RocksDB alone: sta",
        ),
        (
            "{from: orders, process: {class: a:B, by: id, output: {x: int}}}",
            "states of your own keep their state in Ro",
        ),
    ],
)
def test_state_that_only_rocksdb_keeps(step: str, what: str) -> None:
    found = said(of_steps(step) + "state: memory\n")
    assert len(found) == 1 and f": {what}" in found[0], found
    assert said(of_steps(step)) == []


def test_a_global_table_is_looked_up_without_state() -> None:
    with_files = SOURCES + "  regions: {file: {path: r.csv, schema: code string}, table: code}\n"
    everywhere = SOURCES.replace("table: code", "table: {key: code, global: true}")
    step = "{{from: orders, lookup: {{table: {}, on: {{id: code}}}}}}"
    some = "{name: some, from: customers, filter: name = 'x'}"
    both = "{name: both, from: customers, lookup: {table: regions, on: {code: code}}}"
    memory = "state: memory\n"
    for sources, *steps in (
        (with_files, step.format("regions")),
        (everywhere, step.format("customers")),
        (everywhere, some, step.format("some")),
    ):
        assert said(of_steps(*steps).replace(SOURCES, sources) + memory) == [], steps
    found = said(of_steps(both, step.format("both")).replace(SOURCES, with_files) + memory)
    assert [one.partition(":")[0] for one in found] == ["steps[1] (lookup_2)"], found
