"""What the two ends of a mirror mean."""

import pytest

from leafcuttr_forward.flows.spec import Guarantee, Start, TopicRule
from leafcuttr_forward.mirror.ends import parse_end
from leafcuttr_forward.mirror.spec import NEVER, MirrorOptions, mirror_run, mirror_spec
from leafcuttr_sdk.errors import PluginError

A, B = parse_end("a:1"), parse_end("b:2")


def test_a_cluster_to_a_cluster() -> None:
    spec = mirror_spec(A, B, MirrorOptions())
    assert spec.rules == [TopicRule(source=".*", is_pattern=True, exclude=NEVER)]
    assert (spec.name, spec.guarantee, spec.start) == ("mirror-a:1", Guarantee.EXACTLY_ONCE, Start.EARLIEST)
    assert spec.rules[0].target_of("orders") == "orders"
    for internal in (
        "__consumer_offsets",
        "leafcuttr-flows",
        "mm2-offsets.a.internal",
        "a.checkpoints.internal",
    ):
        assert not spec.rules[0].fits(internal)


def test_some_topics_of_a_cluster() -> None:
    spec = mirror_spec(A, B, MirrorOptions(topics=["sensor.*", "orders"], exclude=["sensor-7"]))
    assert [name for name in ("sensor-1", "sensor-7", "orders", "orders-2") if spec.rule_of(name)] == [
        "sensor-1",
        "orders",
    ]


def test_a_topic_to_a_topic() -> None:
    spec = mirror_spec(parse_end("a:1/orders"), parse_end("b:2/copy"), MirrorOptions())
    assert spec.rules == [TopicRule(source="orders", target="copy")]
    assert spec.name == "mirror-a:1-orders-copy"


def test_a_topic_to_a_cluster_keeps_its_name() -> None:
    spec = mirror_spec(parse_end("a:1/orders"), B, MirrorOptions())
    assert spec.rules == [TopicRule(source="orders", target="orders")]


def test_ends_that_do_not_go_together() -> None:
    with pytest.raises(PluginError, match="the target names the topic copy, and the source none"):
        mirror_spec(A, parse_end("b:2/copy"), MirrorOptions())
    with pytest.raises(PluginError, match="--topics and --exclude choose among all topics"):
        mirror_spec(parse_end("a:1/orders"), B, MirrorOptions(topics=["x"]))


def test_options_come_to_the_flow() -> None:
    options = MirrorOptions(
        name="m",
        at_least_once=True,
        start="latest",
        stop_at_end=True,
        sync_settings=True,
        buffer_bytes=5,
        throttle_bytes_s=6.0,
        dead_letter_topic="d",
        metrics_address=("h", 1),
    )
    run = mirror_run(A, B, ({"x": "1"}, {"y": "2"}), options, ("f",))
    spec = run.spec
    assert (spec.name, spec.guarantee, spec.start) == ("m", Guarantee.AT_LEAST_ONCE, Start.LATEST)
    assert (spec.stop_at_end, spec.creation.sync_settings, spec.buffer_bytes) == (True, True, 5)
    assert (spec.throttle_bytes_s, spec.dead_letter_topic, spec.filters) == (6.0, "d", ("f",))
    assert (run.sources[0].properties, run.target.properties) == ({"x": "1"}, {"y": "2"})
    assert (run.metrics_address, run.topics, len(run.sources)) == (("h", 1), None, 1)
