"""A topic's settings over the broker's."""

from dataclasses import fields

import pytest

from leafcuttr.config.catalog import CORE, TOPIC
from leafcuttr.config.settings import Settings
from leafcuttr.config.topic import (
    TopicConfig,
    stored_topic_config,
    topic_config,
    validate_override,
    validate_overrides,
)
from leafcuttr.errors import InvalidConfig


def test_an_attribute_for_every_setting() -> None:
    assert [field.name.replace("_", ".") for field in fields(TopicConfig)] == [*TOPIC, "extra"]


def test_overrides_over_the_broker() -> None:
    settings = Settings({"log.retention.hours": "1", "message.max.bytes": "5"})
    config = topic_config(settings, {"retention.ms": " 7 ", "cleanup.policy": "compact, delete"})
    assert config.retention_ms == 7
    assert config.max_message_bytes == 5
    assert config.compact and config.delete
    assert not config.log_append_time
    assert topic_config(settings).retention_ms == 3_600_000


def test_topics_without_overrides_share_one_object() -> None:
    settings = Settings()
    first = topic_config(settings)
    assert topic_config(settings, {}) is first
    settings.replace_dynamic({"log.retention.ms": "9"})
    assert topic_config(settings).retention_ms == 9
    assert topic_config(Settings()).retention_ms == first.retention_ms


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"nope": "1"}, "Unknown topic config name: nope"),
        ({"retention.ms": "abc", "nope": "1"}, "Unknown topic config name: nope"),
        (
            {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"},
            "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
    ],
)
def test_refused(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        topic_config(Settings(), overrides)
    assert str(caught.value) == message


def test_a_lag_may_conflict_with_the_brokers() -> None:
    with pytest.raises(InvalidConfig, match="conflict"):
        topic_config(Settings({"log.cleaner.max.compaction.lag.ms": "50"}), {"min.compaction.lag.ms": "100"})


def test_null_has_no_place_in_a_new_topic() -> None:
    with pytest.raises(InvalidConfig, match=r"^Null value not supported for topic configs: retention.ms$"):
        validate_overrides(Settings(), {"retention.ms": None})
    validate_overrides(Settings(), {"retention.ms": "5"})


def test_one_override() -> None:
    assert validate_override(CORE, "segment.bytes", "1048576") == 1048576
    with pytest.raises(InvalidConfig):
        validate_override(CORE, "segment.bytes", "1048575")


def test_what_an_older_version_stored_does_not_stop_the_start() -> None:
    config = stored_topic_config(Settings(), {"segment.bytes": "14", "gone": "1", "retention.ms": "5"})
    assert config.segment_bytes == 2**30
    assert config.retention_ms == 5
