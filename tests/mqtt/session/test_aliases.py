"""Topic aliases in both directions."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.packets.errors import PacketError
from leafcuttr_mqtt.packets.types import ReasonCode
from leafcuttr_mqtt.session.aliases import SHORTEST, InboundAliases, OutboundAliases


def test_an_alias_is_set_used_and_set_anew() -> None:
    aliases = InboundAliases(2)
    assert aliases.resolve(1, "first") == "first"
    assert aliases.resolve(2, "second") == "second"
    assert aliases.resolve(1, "") == "first"
    assert aliases.resolve(1, "third") == "third"
    assert (aliases.resolve(1, ""), aliases.resolve(2, "")) == ("third", "second")


@pytest.mark.parametrize(("maximum", "alias"), [(2, 3), (2, 0), (0, 1), (65_535, 0)])
def test_an_alias_that_was_not_granted_is_refused(maximum: int, alias: int) -> None:
    with pytest.raises(PacketError) as caught:
        InboundAliases(maximum).resolve(alias, "a")
    assert caught.value.reason == ReasonCode.TOPIC_ALIAS_INVALID
    assert str(alias) in caught.value.text


def test_an_alias_without_a_topic_is_a_protocol_error() -> None:
    with pytest.raises(PacketError) as caught:
        InboundAliases(2).resolve(2, "")
    assert caught.value.reason == ReasonCode.PROTOCOL_ERROR


def test_towards_the_client_the_first_topics_have_them() -> None:
    aliases = OutboundAliases(2)
    assert aliases.get("topic/1") == (1, False)
    assert aliases.get("topic/1") == (1, False), "until it is put"
    aliases.put("topic/1", 1)
    assert aliases.get("topic/1") == (1, True)
    assert aliases.get("topic/2") == (2, False)
    aliases.put("topic/2", 2)
    assert aliases.get("topic/3") == (0, False)
    assert aliases.get("topic/2") == (2, True)


def test_none_for_a_topic_that_is_no_longer_than_an_alias() -> None:
    aliases = OutboundAliases(2)
    assert aliases.get("a" * (SHORTEST - 1)) == (0, False)
    assert aliases.get("a" * SHORTEST) == (1, False)
