"""What a file of MirrorMaker asks for."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_forward.flows.spec import FlowSpec, Guarantee, Reaction, Start
from leafcuttr_forward.mm2.entries import CLIENT, MIRROR
from leafcuttr_forward.mm2.plan import FlowPlan, MirrorPlan
from leafcuttr_forward.mm2.planning import read_plan
from leafcuttr_sdk.settings import FindingLevel
from support.pages import DOCS

BASE = "clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\n"
ON = f"{BASE}a->b.enabled = true\n"
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
TRANSFORM = "transforms = mask\n"
SAMPLE = Path(__file__).parent / "edge-to-hub.properties"


def plan_of(text: str) -> MirrorPlan:
    plan, said = read_plan(text)
    assert plan is not None, said
    return plan


def flow_of(text: str) -> FlowPlan:
    (flow,) = plan_of(text).flows
    return flow


def copied(spec: FlowSpec, *topics: str) -> dict[str, str]:
    """Which of these topics are copied, and their names at the target."""
    rules = {topic: spec.rule_of(topic) for topic in topics}
    return {topic: rule.target_of(topic) for topic, rule in rules.items() if rule}


def lines(text: str, level: FindingLevel) -> list[str]:
    return [finding.of("f") for finding in read_plan(text)[1] if finding.level is level]


def test_the_defaults_are_those_of_mirror_maker() -> None:
    flow = flow_of(ON)
    assert flow.name == "a->b"
    assert flow.spec.creation.replication_factor == 2
    assert flow.spec.refresh_s == 600.0
    assert flow.spec.start is Start.EARLIEST
    assert flow.offsets_topic == "mm2-offsets.a.internal"
    assert flow.offset_syncs is not None and flow.offset_syncs.topic == "mm2-offset-syncs.b.internal"
    assert flow.offset_syncs.at_source and flow.offset_syncs.lag_max == 100
    assert flow.checkpoints is not None and flow.checkpoints.topic == "a.checkpoints.internal"
    assert (flow.checkpoints.emit_s, flow.checkpoints.refresh_s, flow.checkpoints.sync_s) == (60, 600, None)
    assert flow.checkpoints.groups.fit("readers")
    for group in ("console-consumer-1", "connect-x", "__x", "leafcuttr-a->b"):
        assert not flow.checkpoints.groups.fit(group)


def test_other_than_in_mirror_maker_flows_are_exactly_once_and_of_committed_records() -> None:
    spec = flow_of(ON).spec
    assert spec.guarantee is Guarantee.EXACTLY_ONCE
    assert spec.read_committed


@pytest.mark.parametrize("place", ["", "b.", "a->b."])
@pytest.mark.parametrize(
    ("value", "guarantee"),
    [("disabled", "AT_LEAST_ONCE"), ("enabled", "EXACTLY_ONCE"), ("preparing", "EXACTLY_ONCE")],
)
def test_at_least_once_if_it_is_disabled(place: str, value: str, guarantee: str) -> None:
    spec = flow_of(f"{ON}{place}exactly.once.source.support = {value}\n").spec
    assert spec.guarantee is Guarantee[guarantee]


def test_the_setting_of_the_source_is_not_that_of_the_flow() -> None:
    assert flow_of(f"{ON}a.exactly.once.source.support=disabled\n").spec.guarantee is Guarantee.EXACTLY_ONCE


def test_which_topics_are_copied() -> None:
    names = (
        "orders",
        "b.orders",
        "c.orders",
        "c.b.x",
        "__x",
        ".x",
        "x.replica",
        "x.internal",
        "leafcuttr-flows",
    )
    own = ("mm2-offset-syncs.b.internal", "mm2-offsets.c.internal", "c.checkpoints.internal")
    assert copied(flow_of(f"{ON}topics.exclude = x.replica\n").spec, *names, *own) == {
        "orders": "a.orders",
        "c.orders": "a.c.orders",
        "x.internal": "a.x.internal",
    }
    some = f"{ON}a->b.topics = orders, bills.*\na->b.topics.exclude = bills-old\ntopics = never\n"
    assert copied(flow_of(some).spec, "orders", "bills-1", "bills-old", "never") == {
        "orders": "a.orders",
        "bills-1": "a.bills-1",
    }
    assert copied(flow_of(f"{ON}topics =\n").spec, "orders", "") == {}


def test_heartbeats_are_copied_although_no_topic_is_named() -> None:
    names = ("heartbeats", "c.heartbeats", "b.heartbeats")
    only = f"{ON}topics = orders\n"
    assert copied(flow_of(only).spec, *names) == {
        "heartbeats": "a.heartbeats",
        "c.heartbeats": "a.c.heartbeats",
    }
    assert copied(flow_of(f"{only}heartbeats.replication.enabled = false\n").spec, *names) == {}


def test_identity_keeps_names_but_those_of_heartbeats() -> None:
    spec = flow_of(ON + IDENTITY).spec
    names = ("orders", "heartbeats", "b.heartbeats", "c.heartbeats", "b.orders", "myheartbeats")
    assert copied(spec, *names) == {
        "orders": "orders",
        "heartbeats": "a.heartbeats",
        "c.heartbeats": "a.c.heartbeats",
        "b.orders": "b.orders",
        "myheartbeats": "a.myheartbeats",
    }


def test_another_separator() -> None:
    flow = flow_of(f"{ON}replication.policy.separator = _\n")
    assert copied(flow.spec, "orders", "b_orders") == {"orders": "a_orders"}
    assert flow.offset_syncs is not None and flow.offset_syncs.topic == "mm2-offset-syncs_b_internal"
    old = f"{ON}replication.policy.separator=_\nreplication.policy.internal.topic.separator.enabled=false\n"
    flow = flow_of(old)
    assert flow.checkpoints is not None and flow.checkpoints.topic == "a.checkpoints.internal"


def test_what_stands_with_a_flow_counts_before_what_stands_alone() -> None:
    text = f"{ON}replication.factor = 3\na->b.replication.factor = 1\nb->a.replication.factor = 4\n"
    assert flow_of(text).spec.creation.replication_factor == 1


def test_intervals() -> None:
    text = (
        f"{ON}refresh.topics.interval.seconds = 10\na->b.emit.checkpoints.interval.seconds = 5\n"
        "sync.group.offsets.enabled = true\nsync.group.offsets.interval.seconds = 7\n"
        "refresh.groups.interval.seconds = 8\nemit.heartbeats.interval.seconds = 9\n"
    )
    flow, beats = flow_of(text), plan_of(text).heartbeats
    assert flow.spec.refresh_s == 10
    assert flow.checkpoints is not None
    assert (flow.checkpoints.emit_s, flow.checkpoints.sync_s, flow.checkpoints.refresh_s) == (5, 7, 8)
    assert {beat.interval_s for beat in beats} == {9}
    off = flow_of(f"{ON}refresh.topics.enabled = false\nrefresh.groups.enabled = false\n")
    assert off.spec.refresh_s == math.inf
    assert off.checkpoints is not None and off.checkpoints.refresh_s is None


def test_heartbeats_are_of_each_pair_and_at_its_target() -> None:
    assert {(beat.source, beat.target) for beat in plan_of(ON).heartbeats} == {("a", "b"), ("b", "a")}
    (beat,) = [beat for beat in plan_of(ON).heartbeats if beat.target == "a"]
    assert beat.properties["bootstrap.servers"] == "x:1" and beat.topic == "heartbeats"
    assert beat.replication_factor == 3
    assert plan_of(f"{ON}emit.heartbeats.enabled = false\n").heartbeats == []
    (beat,) = plan_of(f"{ON}b->a.emit.heartbeats.enabled = false\n").heartbeats
    assert (beat.source, beat.target) == ("a", "b")
    (beat,) = plan_of(f"{ON}emit.heartbeats.enabled=false\nb->a.emit.heartbeats.enabled=true\n").heartbeats
    assert (beat.source, beat.target) == ("b", "a")


def test_checkpoints_need_offset_syncs() -> None:
    flow = flow_of(f"{ON}emit.offset-syncs.enabled = false\n")
    assert flow.offset_syncs is None and flow.checkpoints is None
    assert flow_of(f"{ON}emit.checkpoints.enabled = false\n").checkpoints is None
    there = flow_of(f"{ON}offset-syncs.topic.location = target\n").offset_syncs
    assert there is not None and not there.at_source and there.topic == "mm2-offset-syncs.a.internal"


def test_where_mirror_maker_has_its_positions() -> None:
    assert flow_of(f"{ON}b.offset.storage.topic = o\n").offsets_topic == "o"
    assert flow_of(f"{ON}offset.storage.topic = p\n").offsets_topic == "p"
    assert flow_of(f"{ON}a.offset.storage.topic = q\n").offsets_topic == "mm2-offsets.a.internal"


def test_settings_of_clients() -> None:
    flow = flow_of(
        f"{ON}security.protocol = SSL\nb.security.protocol = PLAINTEXT\nrequest.timeout.ms = 9\n"
        "a.consumer.fetch.min.bytes = 2\na.producer.acks = 1\nb.producer.max.request.size = 3\n"
        "a->b.source.consumer.fetch.max.bytes = 4\na->b.target.producer.delivery.timeout.ms = 5\n"
        "a->b.consumer.fetch.min.bytes = 6\na->b.admin.request.timeout.ms = 7\n"
        "a->b.target.cluster.bootstrap.servers = z:1\nb->a.source.consumer.fetch.max.bytes = 8\n"
    )
    assert dict(flow.source_properties) == {
        "bootstrap.servers": "x:1",
        "security.protocol": "SSL",
        "fetch.min.bytes": "6",
        "fetch.max.bytes": "4",
        "acks": "1",
        "request.timeout.ms": "7",
    }
    assert dict(flow.target_properties) == {
        "bootstrap.servers": "z:1",
        "security.protocol": "PLAINTEXT",
        "max.request.size": "3",
        "delivery.timeout.ms": "5",
        "fetch.min.bytes": "6",
        "request.timeout.ms": "7",
    }


def test_of_two_roles_the_one_that_a_flow_has_counts() -> None:
    flow = flow_of(
        f"{ON}a.consumer.client.id = c\na.producer.client.id = p\nb.producer.client.id = p\n"
        "b.consumer.client.id = c\n"
    )
    assert flow.source_properties["client.id"] == "c"
    assert flow.target_properties["client.id"] == "p"


def test_settings_of_clients_that_a_flow_uses_itself() -> None:
    spec = flow_of(
        f"{ON}a.consumer.auto.offset.reset = latest\na.consumer.isolation.level = read_uncommitted\n"
        "b.producer.compression.type = zstd\n"
    ).spec
    assert (spec.start, spec.read_committed, spec.compression) == (Start.LATEST, False, "zstd")
    for name, value, allowed in (
        ("a.consumer.auto.offset.reset", "none", "earliest and latest"),
        ("a.consumer.isolation.level", "x", "read_committed and read_uncommitted"),
        ("b.producer.compression.type", "rar", "none, gzip, snappy, lz4 and zstd"),
    ):
        (line,) = lines(f"{ON}{name} = {value}\n", FindingLevel.ERROR)
        assert line == f"f:5: {name}={value}: allowed are {allowed}"


def test_our_own_keys() -> None:
    spec = flow_of(
        f"{ON}lc.filters = one, two\na->b.lc.dead.letter.topic = dead\nlc.throttle.bytes.per.second = 1000\n"
        "lc.buffer.bytes = 2000000\nlc.on.deleted = stop\nlc.on.recreated = wait\nlc.on.truncated = stop\n"
        "lc.on.expired = stop\n"
    ).spec
    assert spec.filters == ("one", "two")
    assert (spec.dead_letter_topic, spec.throttle_bytes_s, spec.buffer_bytes) == ("dead", 1000.0, 2000000)
    assert spec.changes.deleted is Reaction.STOP and spec.changes.recreated is Reaction.WAIT
    assert spec.changes.truncated is Reaction.STOP and spec.changes.expired is Reaction.STOP
    spec = flow_of(ON).spec
    assert (spec.filters, spec.dead_letter_topic, spec.throttle_bytes_s) == ((), None, None)
    assert spec.changes.deleted is Reaction.WAIT


def test_settings_of_topics_that_are_not_copied() -> None:
    def left_out(text: str, name: str) -> bool:
        from leafcuttr_forward.mm2.plan import NamePatterns

        creation = flow_of(text).spec.creation
        return not NamePatterns(expressions=(), include=".*", exclude=creation.settings_exclude).fit(name)

    assert left_out(ON, "min.insync.replicas") and left_out(ON, "lc.filters")
    assert not left_out(ON, "retention.ms")
    other = f"{ON}config.properties.exclude = retention\\\\..*\n"
    assert left_out(other, "retention.ms") and not left_out(other, "min.insync.replicas")
    assert left_out(other, "lc.filters")
    assert flow_of(ON).spec.creation.sync_settings
    assert not flow_of(f"{ON}sync.topic.configs.enabled = false\n").spec.creation.sync_settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f:1: clusters: allowed are the aliases of two clusters or more"),
        (
            "clusters = a\na.bootstrap.servers = x:1\n",
            "f:1: clusters=a: allowed are the aliases of two clusters",
        ),
        (
            "clusters = a, b\na.bootstrap.servers=x:1\n",
            "f:1: clusters=a, b: b.bootstrap.servers is not given",
        ),
        (f"{ON}a->b.topics = (\n", "f:5: a->b.topics=(: "),
        (
            f"{ON}groups = [a[b]]\n",
            "f:5: groups=[a[b]]: a class within a class is not taken here (in [a[b]])",
        ),
        (
            f"{ON}lc.dead.letter.topic = a b\n",
            "f:5: lc.dead.letter.topic=a b: 'a b' is no name of a topic",
        ),
        (f"{ON}replication.factor = 0x2\n", "f:5: replication.factor=0x2: allowed is a whole number"),
        (
            f"{ON}offset-syncs.topic.location = x\n",
            "f:5: offset-syncs.topic.location=x: allowed are source, target",
        ),
        (
            f"{ON}replication.policy.separator =\n",
            "f:5: replication.policy.separator=: allowed is at least one",
        ),
        (
            f"{ON}replication.policy.class = my.Policy\n",
            "f:5: replication.policy.class=my.Policy: allowed are org",
        ),
        (f"{ON}{TRANSFORM}", "f:5: transforms=mask: allowed is nothing. Classes of Java cannot be run."),
        (f"{ON}use.defaults.from = source\n", "f:5: use.defaults.from=source: allowed is target"),
        (
            f"{ON}topic.filter.class = My\n",
            "f:5: topic.filter.class=My: allowed is org.apache.kafka.connect.",
        ),
    ],
)
def test_what_stops_the_start(text: str, said: str) -> None:
    plan, _ = read_plan(text)
    assert plan is None
    errors = lines(text, FindingLevel.ERROR)
    assert errors and errors[0].startswith(said), errors


def test_all_faults_are_said_at_once() -> None:
    text = f"{ON}replication.factor = x\nrefresh.topics.enabled = x\na->b.topics = (\n"
    assert [line.split(":")[1] for line in lines(text, FindingLevel.ERROR)] == ["5", "6", "7"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "emit.heartbeat.enabled = x",
            "no key of MirrorMaker's, and it has no effect; did you mean emit.heartb",
        ),
        ("a->b.topic = x", "no key of MirrorMaker's, and it has no effect; did you mean a->b.topics?"),
        ("a.consumer.fetch.min.byte = 1", "; did you mean a.consumer.fetch.min.bytes?"),
        ("a->c.enabled = true", "c is none of the clusters (a, b)"),
        (
            "b.replication.factor = 1",
            "it is taken as replication.factor or SOURCE->TARGET.replication.factor",
        ),
        (
            "consumer.isolation.level = read_committed",
            "as in MirrorMaker; it is taken with CLUSTER. in front",
        ),
        (
            "a->b.security.protocol = SSL",
            "it is taken with source.consumer., target.producer. or admin. in front",
        ),
        ("topics.blacklist = x", "it is called topics.exclude since Kafka 4.0"),
        ("a->b.enabled = true", "line 5 has it again, and that one counts"),
    ],
)
def test_what_is_warned_of(line: str, said: str) -> None:
    (warning,) = lines(f"{ON}{line}\n", FindingLevel.WARNING)
    assert said in warning
    assert not lines(f"{ON}{line}\n", FindingLevel.ERROR)


def test_secrets_and_what_may_be_one_are_not_shown() -> None:
    text = f"{ON}a.sasl.jaas.configg = hunter2\nb.ssl.key.password = hunter2\na.ssl.keystore.password = ${{x:y}}\n"
    text += (
        "a->b.sasl.password = hunter2\nb.sasl.jaas.config = hunter2\nsasl.login.retry.backoff.ms = hunter3\n"
    )
    said = "".join(finding.of("f") for finding in read_plan(text)[1])
    assert "hunter2" not in said and "sasl.password" in said
    assert "hunter3" in said, "this is none"


def test_names_of_older_versions_are_taken() -> None:
    flow = flow_of(f"{ON}topics.blacklist = orders\ngroups.blacklist = readers\n")
    assert copied(flow.spec, "orders", "bills") == {"bills": "a.bills"}
    assert flow.checkpoints is not None and not flow.checkpoints.groups.fit("readers")


@pytest.mark.parametrize("line", ["key.converter = x", "tasks.max = 3", "b.offset.storage.partitions = 1"])
def test_what_has_no_meaning_here_is_accepted_with_a_line(line: str) -> None:
    (note,) = lines(f"{ON}{line}\n", FindingLevel.NOTE)
    assert ": no meaning here: " in note
    assert not lines(f"{ON}{line}\n", FindingLevel.WARNING)


def test_no_flow_is_enabled() -> None:
    (line,) = lines(BASE, FindingLevel.WARNING)
    assert line == "f:1: clusters=a, b: no flow is enabled; a->b.enabled=true does it"
    assert plan_of(BASE).flows == []


BOTH = f"{ON}b->a.enabled = true\n{IDENTITY}"


def test_identity_in_a_circle_is_refused() -> None:
    (line,) = lines(BOTH, FindingLevel.ERROR)
    assert line.startswith("f:5: b->a.enabled=true: a->b, b->a would copy the same topics again and again")
    assert lines(BOTH.replace(IDENTITY, ""), FindingLevel.ERROR) == []


def test_an_alias_may_have_the_name_of_a_key() -> None:
    text = ON.replace("a", "source").replace("b", "target")
    text = (
        "clusters = source, target\nsource.bootstrap.servers = x:1\ntarget.bootstrap.servers = y:1\n"
        "source->target.enabled = true\nsource.consumer.fetch.min.bytes = 2\n"
    )
    flow = flow_of(text)
    assert flow.source_properties["fetch.min.bytes"] == "2"
    assert flow.target_properties["bootstrap.servers"] == "y:1"


@pytest.mark.parametrize(
    "path",
    [DOCS / "how-to" / "mirror.properties", SAMPLE],
    ids=["how-to", "sample"],
)
def test_the_samples_are_taken_without_a_warning(path: Path) -> None:
    plan, said = read_plan(path.read_text())
    assert plan is not None
    assert {finding.level for finding in said} == {FindingLevel.NOTE}


PLACES = [
    "",
    "a.",
    "b.",
    "a->b.",
    "b->a.",
    "a->c.",
    "->",
    "a->b.source.consumer.",
    "a.producer.",
    "a->b.target.admin.",
]
LINES = st.lists(
    st.tuples(
        st.sampled_from(PLACES),
        st.sampled_from(sorted(MIRROR) + sorted(CLIENT)) | st.text(max_size=10),
        st.sampled_from(["true", "false", "1", "-1", "", ".*", "a,b", "(", "source", "x", IDENTITY])
        | st.text(max_size=10),
    ),
    max_size=12,
)


@given(LINES)
def test_any_file_is_read_or_refused_in_lines(given_lines: list[tuple[str, str, str]]) -> None:
    text = ON + "".join(f"{place}{name}={value}\n" for place, name, value in given_lines)
    plan, said = read_plan(text)
    assert (plan is None) == any(finding.level is FindingLevel.ERROR for finding in said)
    assert all("\n" not in finding.key for finding in said)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_in_lines(text: str) -> None:
    read_plan(text)
