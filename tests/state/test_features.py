"""Feature levels: their defaults, and what an administrator has finalized."""

from collections.abc import Callable

from leafcuttr.state.broker import Broker
from leafcuttr.state.features import FEATURES, TRANSACTION_VERSION

Start = Callable[..., Broker]


def test_a_new_directory_begins_with_the_defaults(start: Start) -> None:
    features = start().features
    assert features.levels == {name: known.default for name, known in FEATURES.items()}
    assert features.transaction_version == FEATURES[TRANSACTION_VERSION].default


def test_a_level_is_in_use_when_it_is_published_and_kept_when_it_is_stored(start: Start) -> None:
    features = start().features
    features.store({TRANSACTION_VERSION: 1})
    assert features.transaction_version == 2
    features.publish({TRANSACTION_VERSION: 1})
    assert features.transaction_version == 1
    assert start().features.levels == {TRANSACTION_VERSION: 1}
