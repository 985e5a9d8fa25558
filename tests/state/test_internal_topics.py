"""The shape of the topics that the broker keeps for itself."""

from leafcuttr.config.settings import Settings
from leafcuttr.state.internal_topics import internal_topic


def test_offsets_by_their_settings() -> None:
    settings = Settings({"offsets.topic.num.partitions": "7", "offsets.topic.segment.bytes": "2000000"})
    shape = internal_topic("__consumer_offsets", settings)
    assert shape is not None and shape.partitions == 7
    assert shape.overrides == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "2000000",
    }


def test_transactions_by_theirs() -> None:
    names = ("transaction.state.log.num.partitions", "transaction.state.log.segment.bytes")
    shape = internal_topic("__transaction_state", Settings(dict(zip(names, ("9", "3000000"), strict=True))))
    assert shape is not None and shape.partitions == 9
    assert shape.overrides == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": "3000000",
    }


def test_others_are_not_internal() -> None:
    for name in ("orders", "__cluster_metadata", "__consumer_offsets_", ""):
        assert internal_topic(name, Settings()) is None
