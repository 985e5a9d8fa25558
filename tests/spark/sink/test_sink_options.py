"""The options of the sink."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from leafcuttr_sdk.batches.compression import Codec
from leafcuttr_spark.options import OptionError, Query
from leafcuttr_spark.sink.options import OPTIONS, SinkOptions, sink_options

LEAST = {"kafka.bootstrap.servers": "hub:9092", "kafka.transactional.id": "sums"}


def options(query: Query = Query.STREAM, **given: Any) -> SinkOptions:
    return sink_options({**LEAST, **given}, query)


def test_defaults() -> None:
    found = options()
    assert (found.client, found.topic, found.headers) == ({"bootstrap.servers": "hub:9092"}, None, False)
    assert (found.exactly_once, found.transactional_id, found.timeout_ms) == (True, "sums", 600_000)
    assert (found.codec, found.batch_bytes) == (Codec.NONE, 512 << 10)
    assert pickle.loads(pickle.dumps(found)) == found


def test_what_is_given() -> None:
    found = options(
        topic=" sums ",
        includeHeaders="true",
        tasks="3",
        **{
            "kafka.compression.type": "ZSTD",
            "kafka.batch.size": "1000",
            "kafka.transaction.timeout.ms": "5000",
        },
    )
    assert (found.topic, found.headers, found.tasks) == ("sums", True, 3)
    assert (found.codec, found.batch_bytes, found.timeout_ms) == (Codec.ZSTD, 1000, 5000)


def test_a_stream_needs_a_transactional_id_and_a_batch_does_not() -> None:
    only = {"kafka.bootstrap.servers": "hub:9092"}
    with pytest.raises(
        OptionError, match=r"kafka\.transactional\.id is missing: .* or delivery=at-least-once"
    ):
        sink_options(only, Query.STREAM)
    assert sink_options(only, Query.BATCH).transactional_id is None
    assert not sink_options({**only, "delivery": "at-least-once"}, Query.STREAM).exactly_once
    with pytest.raises(OptionError, match="is not for delivery=at-least-once"):
        options(delivery="at-least-once")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("topic", " ", "allowed is the name of a topic"),
        ("delivery", "once", "allowed is exactly-once or at-least-once"),
        ("kafka.compression.type", "brotli", "allowed is none or gzip or snappy or lz4 or zstd"),
        ("kafka.acks", "1", "the option kafka.acks is not allowed: it is all"),
        ("kafka.partitioner.class", "x", "a column partition says where a row goes"),
        ("subscribe", "x", "there is no option subscribe"),
    ],
)
def test_what_is_refused(name: str, value: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        options(**{name: value})


def test_the_cluster_has_to_be_given() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing"):
        sink_options({}, Query.BATCH)


def test_each_option_has_a_sentence() -> None:
    assert all(option.what.endswith(".") for option in OPTIONS)
