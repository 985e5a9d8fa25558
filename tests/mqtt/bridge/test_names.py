"""A bridge's name and its option, in the name of a setting."""

from __future__ import annotations

from leafcuttr_mqtt.bridge.names import split


def test_the_longest_option_counts() -> None:
    assert split("cloud.address") == ("cloud", "address")
    assert split("a.b-c.ssl.key.password") == ("a.b-c", "ssl.key.password")
    assert split("a.notifications.local.only") == ("a", "notifications.local.only")
    assert split("address") is None
    assert split(".address") is None
    assert split("a.b") is None
