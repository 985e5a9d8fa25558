import pytest

from leafcuttr.state import topic_names
from leafcuttr_mqtt.mapping.kafka_names import why_no_kafka_topic, why_no_target

NAMES = (
    "a", "A-z_0.9", "...", "a" * 249, "_a", "__a",
    "", ".", "..", "a" * 250, "a b", "a/b", "é", "a\n", "+", "#", "{1}",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_the_broker_says(name: str) -> None:
    assert (why_no_kafka_topic(name) is None) == topic_names.is_valid(name)


def test_no_message_goes_to_an_internal_topic() -> None:
    for name in (*topic_names.INTERNAL, topic_names.METADATA_TOPIC, "__mqtt_sessions"):
        assert why_no_target(name) == "names that begin with __ are those of internal topics"
    assert why_no_target("_orders") is None
    assert why_no_target("a b") == why_no_kafka_topic("a b")
