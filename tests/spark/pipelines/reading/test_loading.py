"""From a file to a pipeline: each key, and all that is wrong at once, with lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr_spark.pipelines import model
from leafcuttr_spark.pipelines import operations as op
from leafcuttr_spark.pipelines.errors import PipelineFaultsError
from leafcuttr_spark.pipelines.reading.kinds import MOST_FAULTS
from leafcuttr_spark.pipelines.reading.loading import parse_pipeline, read_pipeline
from leafcuttr_spark.pipelines.reading.yaml_nodes import MOST_BYTES
from spark.pipelines.written import HEAD, SINK, faults_of, read

WHOLE = """\
pipeline: orders-by-region
variables: {region: eu, registry: "http://localhost:8081"}
clusters:
  hub: {bootstrap.servers: "hub:9092", sasl.password: "${file:password}"}
  edge: {bootstrap.servers: "edge:9092"}
registry: {url: "${registry}", basic.auth.user.info: "ada:sesame"}
session: {master: "local[2]", config: {spark.sql.shuffle.partitions: 2}}
checkpoint: ./state
trigger: {every: 500ms}
limits: {records-per-batch: 10}
idle: never
state: memory
sources:
  orders:
    topics: [orders, more]
    cluster: hub
    value: {format: avro, schema: orders.avsc, id: header}
    key: {format: json, columns: "id STRING", as: k}
    columns: {at: timestamp, place: partition}
    start: {offsets: {orders: {0: 23}}}
    time: at
    watermark: 10s
    idle: 1m
    via: kafka
    options: {failOnDataLoss: false}
  customers:
    topic: customers
    cluster: edge
    start: {timestamp: 2026-01-01T00:00:00Z}
    table: {key: id, global: true, refresh: 60s}
  regions: {file: "regions.csv", table: code}
  lines: {file: {path: in/, format: json, schema: {id: string, "a b": int}, options: {multiLine: true}}}
steps:
  - {name: large, from: orders, filter: "region = '${region}'"}
  - map: {total: amount * price}
sinks:
  totals:
    topic: totals
    cluster: hub
    key: {columns: [a, b], format: avro}
    value: {format: protobuf, schema: t.desc, message: a.B, columns: [c]}
    headers: {source: "'x'"}
    headers-column: h
    partition: id % 3
    timestamp: made_at
    delivery: at-least-once
    options: {kafka.compression.type: zstd}
  routed: {from: large, topic: {column: target}, cluster: hub, value: {expression: upper(name)}}
  archive: {from: large, file: {path: out/, format: orc, partition-by: day}}
  custom: {from: large, python: {class: "a.b:C", arguments: {n: 1, x: 1.5, on: true, t: "2", l: [a]}}}
dead-letters: {topic: dead, stop-after: 100, stop-above: 1%, window: 500, cluster: hub}
late: dead-letters
"""


def test_all_keys_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("open sesame\n")
    found = read(WHOLE, {"region": "us"}, folder=tmp_path)
    assert found.name == "orders-by-region"
    assert found.clusters == {
        "hub": {"bootstrap.servers": "hub:9092", "sasl.password": "open sesame"},
        "edge": {"bootstrap.servers": "edge:9092"},
    }
    assert found.registry == {
        "schema.registry.url": "http://localhost:8081",
        "basic.auth.user.info": "ada:sesame",
    }
    assert found.session == model.SessionSettings("local[2]", None, {"spark.sql.shuffle.partitions": "2"})
    assert (found.checkpoint, found.trigger, found.records_per_batch) == ("./state", model.Trigger(500), 10)
    assert (found.idle_ms, found.state_store, found.late) == (0, "memory", "dead-letters")
    assert found.dead_letters == model.DeadLetters("dead", 100, 0.01, 500, "hub")
    assert (found.file, found.folder) == (tmp_path / "p.yaml", tmp_path)
    assert found.sources == {
        "orders": model.Source(
            model.TopicOrigin(
                topics=("orders", "more"),
                value=model.Decoding("avro", schema=tmp_path / "orders.avsc", schema_id="header"),
                key=model.Decoding("json", columns="id STRING", as_="k"),
                columns={"at": "timestamp", "place": "partition"},
                start=model.Start("offsets", offsets={"orders": {0: 23}}),
                cluster="hub",
                via="kafka",
                options={"failOnDataLoss": "false"},
            ),
            time="at",
            watermark_ms=10_000,
            idle_ms=60_000,
        ),
        "customers": model.Source(
            model.TopicOrigin(
                ("customers",), start=model.Start("timestamp", timestamp_ms=1_767_225_600_000), cluster="edge"
            ),
            table=model.Table(("id",), 60_000, is_global=True),
        ),
        "regions": model.Source(model.FileOrigin("regions.csv", "csv"), table=model.Table(("code",))),
        "lines": model.Source(
            model.FileOrigin("in/", "json", "id string, `a b` int", {"multiLine": "true"}),
        ),
    }
    assert found.steps == (
        model.Step("large", op.Filter("region = 'us'"), "orders"),
        model.Step("map_2", op.Map({"total": "amount * price"}), "large"),
    )
    assert found.sinks == {
        "totals": model.Sink(
            "map_2",
            model.TopicTarget(
                topic="totals",
                value=model.Encoding("protobuf", ("c",), schema=tmp_path / "t.desc", message="a.B"),
                key=model.Encoding("avro", ("a", "b")),
                headers={"source": "'x'"},
                headers_column="h",
                partition="id % 3",
                timestamp="made_at",
                delivery="at-least-once",
                cluster="hub",
                options={"kafka.compression.type": "zstd"},
            ),
        ),
        "routed": model.Sink(
            "large",
            model.TopicTarget(
                topic_column="target", value=model.Encoding("text", expression="upper(name)"), cluster="hub"
            ),
        ),
        "archive": model.Sink("large", model.FileTarget("out/", "orc", ("day",))),
        "custom": model.Sink(
            "large", model.PythonTarget("a.b:C", {"n": 1, "x": 1.5, "on": True, "t": "2", "l": ["a"]})
        ),
    }
    assert [source.line for source in found.sources.values()] == [14, 26, 31, 32]
    assert [step.line for step in found.steps] == [34, 35]
    assert [(step.index, step.part) for step in found.steps] == [
        (0, "steps[0] (large)"),
        (1, "steps[1] (map_2)"),
    ]
    assert [sink.line for sink in found.sinks.values()] == [37, 48, 49, 50]


def test_secrets_are_in_no_repr(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("open sesame\n")
    found = read(WHOLE, folder=tmp_path)
    assert "sesame" not in repr(found)
    assert found.secrets.hide("with open sesame!") == "with ***!"


def test_a_short_secret_is_hidden_where_it_is_a_word() -> None:
    secrets = model.Secrets(frozenset(["eu", "sesame", "sesame-2"]))
    assert secrets.hide("queue eu sesame-2 xsesame") == "queue *** *** x***"


SHORT = HEAD + "sources: {orders: {topic: orders}}\n" + SINK


def test_what_a_short_file_means() -> None:
    found = read(SHORT)
    assert found.clusters == {"main": {"bootstrap.servers": "localhost:9092"}}
    assert found.sources["orders"].origin == model.TopicOrigin(("orders",))
    assert found.sinks["out"] == model.Sink("orders", model.TopicTarget("out"))
    assert (found.trigger, found.records_per_batch, found.idle_ms) == (model.Trigger(1000), 100_000, 30_000)
    assert (found.registry, found.checkpoint, found.dead_letters, found.late) == (None, None, None, "count")
    assert found.state_store == "rocksdb" and found.session == model.SessionSettings()


@pytest.mark.parametrize(
    ("line", "of", "value"),
    [
        (
            "cluster: {client.id: x}",
            "clusters",
            {"main": {"bootstrap.servers": "localhost:9092", "client.id": "x"}},
        ),
        ("registry: http://r:8081", "registry", {"schema.registry.url": "http://r:8081"}),
        ("session: spark://h:7077", "session", model.SessionSettings("spark://h:7077")),
        ("session: {remote: sc://h:15002}", "session", model.SessionSettings(None, "sc://h:15002")),
        ("trigger: available-now", "trigger", model.Trigger(available_now=True)),
        ("trigger: {available-now: true}", "trigger", model.Trigger(available_now=True)),
        ("trigger: 5s", "trigger", model.Trigger(5000)),
        ("dead-letters: dead", "dead_letters", model.DeadLetters("dead")),
        (
            "dead-letters: {topic: dead, stop-above: 0.5}",
            "dead_letters",
            model.DeadLetters("dead", None, 0.5),
        ),
        ("idle: PT1M", "idle_ms", 60_000),
        ("state: {store: rocksdb}", "state_store", "rocksdb"),
    ],
)
def test_short_forms(line: str, of: str, value: object) -> None:
    assert getattr(read(f"{SHORT}{line}\n"), of) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "p.yaml:1: a list is not allowed; allowed: a mapping with pipeline, variables, cluster"),
        (
            SHORT + "pipelin: x\n",
            "p.yaml:4: there is no key pipelin: did you mean pipeline?; allowed: pipeline, ",
        ),
        (
            SHORT.replace("pipeline: p", "pipeline:"),
            "p.yaml:1: pipeline: there is no value; allowed: a name of",
        ),
        ("sources: {a: {topic: a}}\n" + SINK, "p.yaml:1: the key pipeline is missing: a name of letters"),
        (
            SHORT + "trigger: {every: 5 apples}\n",
            "p.yaml:4: trigger.every: '5 apples' is not allowed; allowed: a dur",
        ),
        (
            SHORT + "trigger: {evry: 5s}\n",
            "p.yaml:4: trigger: there is no key evry: did you mean every?; allowed: ",
        ),
        (
            SHORT + "idle: 0s\n",
            "p.yaml:4: idle: '0s' is not allowed; allowed: a duration, as 500ms, 10s, 5m, 1h or ",
        ),
        (
            SHORT + "limits: {records-per-batch: 0}\n",
            "p.yaml:4: limits.records-per-batch: '0' is not allowed; allow",
        ),
        (
            SHORT + "dead-letters: {topic: d, stop-above: 101%}\n",
            "p.yaml:4: dead-letters.stop-above: '101%' is not ",
        ),
        (
            SHORT + "late: dead-letter\n",
            "p.yaml:4: late: 'dead-letter' is not allowed: did you mean dead-letters?; ",
        ),
        (
            SHORT + "registry: {basic.auth.user.info: a}\n",
            "p.yaml:4: registry: the key url is missing: the address o",
        ),
        (
            SHORT + "cluster: {a: b}\nclusters: {m: {a: b}}\n",
            "p.yaml:5: cluster and clusters exclude each other",
        ),
        (
            SHORT + "session: {master: a, remote: b}\n",
            "p.yaml:4: session: master and remote exclude each other",
        ),
        (
            SHORT + "steps: {filter: x}\n",
            "p.yaml:4: steps: a mapping is not allowed; allowed: a list of steps, each ",
        ),
        (
            SHORT + "steps: [x]\n",
            "p.yaml:4: steps[0]: a step is a mapping with one operation: filter, map, select",
        ),
        (SHORT + "steps: [{name: a}]\n", "p.yaml:4: steps[0] (a): the operation is missing: filter, map, "),
        (
            SHORT + "steps: [{filtr: x}]\n",
            "p.yaml:4: steps[0] (step_1): there is no key filtr: did you mean filter?",
        ),
        (
            SHORT + "steps: [{filter: a, drop: b}]\n",
            "p.yaml:4: steps[0] (filter_1): a step has one operation; filter",
        ),
        (
            SHORT + "steps: [{name: a-b, filter: x}]\n",
            "p.yaml:4: steps[0]: name: 'a-b' is not allowed; allowed: a name of",
        ),
        (
            SHORT + "steps: [{filter: [x]}]\n",
            "p.yaml:4: steps[0] (filter_1): filter: a list is not allowed; allowed:",
        ),
        (
            SHORT + "steps: [{filter: }]\n",
            "p.yaml:4: steps[0] (filter_1): filter: there is no value; allowed: an e",
        ),
        (
            HEAD + "sources: {a-b: {topic: a}}\n" + SINK,
            "p.yaml:2: sources.a-b: the name of a source has letters, di",
        ),
        (
            HEAD + "sources: []\n" + SINK,
            "p.yaml:2: sources: a list is not allowed; allowed: names with sources",
        ),
        (
            HEAD + "sources: {a: {}}\n" + SINK,
            "p.yaml:2: sources.a: one of topic, topics, pattern and file is needed;",
        ),
        (
            HEAD + "sources: {a: {topic: 'a b'}}\n" + SINK,
            "p.yaml:2: sources.a: topic: 'a b' is not allowed; allow",
        ),
        (
            HEAD + "sources: {a: {topic: a, value: jsn}}\n" + SINK,
            "p.yaml:2: sources.a: value: 'jsn' is not allowed: ",
        ),
        (
            HEAD + "sources: {a: {topic: a, value: json}}\n" + SINK,
            "p.yaml:2: sources.a: value: json needs columns: i",
        ),
        (
            HEAD + "sources: {a: {topic: a, value: {format: text, schema: x}}}\n" + SINK,
            "p.yaml:2: sources.a: value.schema: is for avro and json-schema and protobuf, not for text",
        ),
        (
            HEAD + "sources: {a: {topic: a, value: {format: avro, columns: {a: int}}}}\n" + SINK,
            "p.yaml:2: sources.a: value.columns: is for json; the columns of avro are those of its schema",
        ),
        (
            HEAD + "sources: {a: {file: x.csv, value: text}}\n" + SINK,
            "p.yaml:2: sources.a: value: is for topics, not",
        ),
        (
            HEAD + "sources: {a: {file: x}}\n" + SINK,
            "p.yaml:2: sources.a: file: the name x has no known ending; form",
        ),
        (
            HEAD + "sources: {a: {file: x.csv, watermark: 1s}}\n" + SINK,
            "p.yaml:2: sources.a: files have no time of ",
        ),
        (
            HEAD + "sources: {a: {topic: a, table: id, watermark: 1s}}\n" + SINK,
            "p.yaml:2: sources.a: watermark: a table has no watermark: rows of any age count until there is a newer",
        ),
        (
            HEAD + "sources: {a: {topics: [a, b], start: {offsets: {0: 1}}}}\n" + SINK,
            "p.yaml:2: sources.a: start: with several topics offsets are given by topic: {orders: {0: 23}}",
        ),
        (
            HEAD + "sources: {a: {topic: a, start: {offsets: {x: 1}}}}\n" + SINK,
            "p.yaml:2: sources.a: start.offsets: ",
        ),
        (
            HEAD + "sources: {a: {topic: a, start: earlist}}\n" + SINK,
            "p.yaml:2: sources.a: start: 'earlist' is not al",
        ),
        (
            HEAD + "sources: {a: {topic: a, columns: {x: offst}}}\n" + SINK,
            "p.yaml:2: sources.a: columns.x: 'offst' is",
        ),
        (
            SHORT.replace("{topic: out}", "{}"),
            "p.yaml:3: sinks.out: one of topic, file and python is needed; none",
        ),
        (
            SHORT.replace("{topic: out}", "{topic: out, file: x}"),
            "p.yaml:3: sinks.out: one of topic, file and pyth",
        ),
        (SHORT.replace("{topic: out}", "{file: x, key: a}"), "p.yaml:3: sinks.out: key: is for topics"),
        (
            SHORT.replace("{topic: out}", "{python: x}"),
            "p.yaml:3: sinks.out: python: 'x' is not allowed; allowed: p",
        ),
        (
            SHORT.replace("{topic: out}", "{topic: o, key: {format: avro}}"),
            "p.yaml:3: sinks.out: key: the key needs ",
        ),
        (
            SHORT.replace("{topic: out}", "{topic: o, value: {columns: a, expression: b}}"),
            "p.yaml:3: sinks.out: value: columns and expression exclude each other",
        ),
        (
            SHORT.replace("topic: orders", 'topic: "${x}"'),
            "p.yaml:2: sources.orders: topic: there is no variable x",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_what_is_allowed(text: str, said: str) -> None:
    found = faults_of(text)
    assert len(found) == 1, found
    assert found[0].startswith(said)


def test_all_that_is_wrong_is_said_at_once_in_the_order_of_lines() -> None:
    text = "pipeline: a b\nsinks: {x: {topc: y}}\nsources:\n  a: {topic: a, value: avo}\nidle: soon\n"
    assert [line.split(" ")[0] for line in faults_of(text)] == [
        "p.yaml:1:",
        "p.yaml:2:",
        "p.yaml:4:",
        "p.yaml:5:",
    ]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (SHORT + "steps: [{cast: {a: decimal(10,2)}}]\n", "steps[0] (cast_1): cast: "),
        (SHORT + "steps: [{count: {by: a, as: f(x, y)}}]\n", "steps[0] (count_1): count: "),
        (
            SHORT + "steps: [{aggregate: {by: a, x: round(sum(b), 2)}}]\n",
            "steps[0] (aggregate_1): aggregate: ",
        ),
        (
            SHORT.replace("{topic: orders}", "{topic: a, value: {format: json, columns: {a: map<int,int>}}}"),
            "sources.orders",
        ),
    ],
    ids=range(4),
)
def test_a_comma_within_braces_is_explained(text: str, at: str) -> None:
    found = [line for line in faults_of(text) if "a text with a comma in it needs quotes within { }" in line]
    assert len(found) == 1 and f"p.yaml:{4 if 'steps' in text else 2}: {at}" in found[0]


def test_what_is_missing_comes_in_the_order_of_lines_too() -> None:
    found = faults_of("late: x\n" + SINK + "sources: {a: {topic: a, via: y}}\n")
    assert [line.split(": ")[0] for line in found] == ["p.yaml:1", "p.yaml:1", "p.yaml:3"]
    assert [": the key pipeline is missing" in line for line in found] == [False, True, False]


def test_very_many_faults_are_cut() -> None:
    text = SHORT + "steps:\n" + "- filtr: x\n" * 5000
    found = faults_of(text)
    assert len(found) == MOST_FAULTS + 1
    assert found[-1] == "p.yaml: and more, which are not shown"


def test_a_fault_of_an_alias_is_said_once() -> None:
    text = SHORT.replace("{topic: out}", "&a {topic: o, delivery: once}, two: *a")
    assert [line.split(": ")[1] for line in faults_of(text)] == ["sinks.out", "sinks.two"]


def test_variables_that_are_set_have_to_be_there() -> None:
    text = SHORT + "variables: {region: eu}\n"
    assert faults_of(text, {"regoin": "us"}) == [
        "p.yaml: --set regoin: the file has no variable of this name: did you mean region?"
    ]
    assert faults_of(SHORT, {"x": "y"}) == [
        "p.yaml: --set x: the file has no variable of this name; it has none"
    ]


def test_a_secret_is_in_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_TEST_SECRET", "open-sesame")
    text = SHORT + "late: ${env:LC_TEST_SECRET}\ntrigger: {every: 'x${env:LC_TEST_SECRET}'}\n"
    found = "\n".join(faults_of(text, folder=tmp_path))
    assert "sesame" not in found
    assert "late: '***' is not allowed" in found and "trigger.every: 'x***' is not allowed" in found


def test_secrets_that_are_not_there(tmp_path: Path) -> None:
    text = SHORT + "cluster: {sasl.password: '${env:LC_NOT_THERE}'}\n"
    assert faults_of(text) == ["p.yaml:4: cluster.sasl.password: the environment has no LC_NOT_THERE"]
    _, notes = parse_pipeline(text.encode(), tmp_path / "p.yaml", needs_secrets=False)
    assert [note.text("p.yaml") for note in notes] == [
        "p.yaml: the environment has no LC_NOT_THERE, which it needs to run"
    ]
    assert all(note.note for note in notes)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PipelineFaultsError, match=r"none\.yaml: cannot be read: No such file or directory"):
        read_pipeline(tmp_path / "none.yaml")
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(
        PipelineFaultsError, match=r"large.yaml: the file is larger than 256 KiB, which is the most"
    ):
        read_pipeline(large)
    with pytest.raises(PipelineFaultsError, match="cannot be read: Is a directory"):
        read_pipeline(tmp_path)


def test_a_sink_takes_the_last_step_and_a_step_the_one_before() -> None:
    text = (
        HEAD
        + "sources: {a: {topic: a}, b: {topic: b, table: key}}\n"
        + "steps: [{filter: x}, {branch: {y: q, z: r}}, {from: y, drop: s}]\n"
        + SINK
    )
    found = read(text)
    assert [step.from_ for step in found.steps] == ["a", "filter_1", "y"]
    assert found.sinks["out"].from_ == "drop_3"


def test_where_it_is_not_clear_nothing_is_taken() -> None:
    text = HEAD + "sources: {a: {topic: a}, b: {topic: b}}\nsteps: [{filter: x}, {branch: {y: q}}]\n" + SINK
    found = read(text)
    assert found.steps[0].from_ is None
    assert found.sinks["out"].from_ == "y"
    text = text.replace("{y: q}", "{y: q, z: r}")
    assert read(text).sinks["out"].from_ == ""


def test_a_query_has_the_frames_that_it_names() -> None:
    text = (
        HEAD
        + "sources: {a: {topic: a}, b: {topic: b}}\n"
        + "steps: [{sql: 'WITH c AS (SELECT * FROM a) SELECT * FROM c JOIN b USING (k)'}]\n"
        + SINK
    )
    step = read(text).steps[0]
    assert isinstance(step.operation, op.Sql)
    assert (step.from_, sorted(step.inputs)) == (None, ["a", "b"])
