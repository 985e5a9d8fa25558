"""The topics in a member's metadata: what Kafka's clients send, and bytes that are something else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.state.groups.subscription import topics_of
from support.groups import subscription

NAMES = st.lists(st.text(st.characters(max_codepoint=127), max_size=20), max_size=5)


@given(NAMES, st.binary(max_size=20))
def test_topics_of_a_consumer(names: list[str], more: bytes) -> None:
    """What later versions have behind the topics is not read."""
    assert topics_of(subscription(*names) + more) == frozenset(names)


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0\0\0",
        b"\xff\xff\0\0\0\0",  # version -1
        b"\0\0\xff\xff\xff\xff",  # -1 topics
        b"\0\0\x7f\xff\xff\xff\0\1t",  # more topics than bytes
        b"\0\0\0\0\0\1\xff\xff",  # a null name
        b"\0\0\0\0\0\1\0\2t",  # cut off
        b"\0\0\0\0\0\1\0\1\xff",  # no UTF-8
    ],
)
def test_other_bytes_have_no_known_topics(metadata: bytes) -> None:
    assert topics_of(metadata) is None


@given(st.binary(max_size=100))
def test_any_bytes_can_be_read(metadata: bytes) -> None:
    topics_of(metadata)
