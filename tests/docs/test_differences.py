"""docs/explanation/differences.md says what the code does: its numbers, the defaults that are not Kafka's."""

from __future__ import annotations

import re

import pytest

from leafcuttr.config.catalog import BROKER, KAFKA_DEFAULTS
from leafcuttr.config.setting import Effect, render
from leafcuttr.handlers.answers import REPEATED
from leafcuttr.state.fetch_sessions import MOST_PARTITIONS
from leafcuttr.state.groups.idle import MOST_HANDED_OUT, MOST_IDLE
from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.reading import MAX_ELEMENTS
from support.pages import DOCS

PAGE = (DOCS / "explanation" / "differences.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())


def test_every_default_that_is_not_kafkas_is_named_with_its_value() -> None:
    for name in KAFKA_DEFAULTS:
        value = render(BROKER[name].default)
        about = WORDS[WORDS.index(f"`{name}`") :][:200]
        assert f"`{value}`" in about or re.search(rf"\b{re.escape(str(value))}\b", about), (name, value)


@pytest.mark.parametrize(
    "words",
    [
        f"at most {MAX_ELEMENTS:,} elements",
        f"at most {MOST_PARTITIONS:,} partitions",
        f"answered again up to {REPEATED} times",
        f"without committed offsets at most {MOST_IDLE:,} are kept",
        f"the last {MOST_HANDED_OUT:,} of all groups are remembered",
    ],
)
def test_its_numbers_are_those_of_the_code(words: str) -> None:
    assert words in WORDS


def test_settings_it_names_exist() -> None:
    names = set(re.findall(r"`([a-z]+(?:\.[a-z]+){1,6})`", PAGE))
    # Left of the dot: patterns of settings end in *, which the expression does not take.
    unknown = {name for name in names if name not in BROKER and name not in NOT_SETTINGS}
    assert unknown == set()


NOT_SETTINGS = {
    "org.apache.kafka.sasl.oauthbearer.allowed.urls",  # a property of Java's
    "meta.properties",
    "transaction.version",
    "max.message.bytes",
    "message.timestamp.before.max.ms",
}


def test_what_it_says_has_no_effect_has_none() -> None:
    for name in ("min.insync.replicas", "unclean.leader.election.enable"):
        assert BROKER[name].effect is not Effect.HONOURED


def test_what_is_not_supported_yet_is_not_answered() -> None:
    """When one of these comes, the page has to change."""
    later = WORDS[WORDS.index("## Not yet") :]
    absent = {"KIP-848": 68, "share groups": 76}
    for words, key in absent.items():
        assert words in later
        assert key not in APIS
    assert max(api.max_version for key, api in APIS.items() if key == ApiKey.INIT_PRODUCER_ID) < 6, "KIP-939"
