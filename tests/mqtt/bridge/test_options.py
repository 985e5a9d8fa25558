"""How the options of bridges are read, and what is told about what cannot be."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.bridge.options import OPTIONS, Address, Bridge, read_bridges, why_no_option
from leafcuttr_mqtt.bridge.settings import settings
from leafcuttr_mqtt.bridge.topics import Rule
from leafcuttr_mqtt.packets.types import Version
from leafcuttr_sdk.testing import fixed_settings

LEAST = {"cloud.address": "broker", "cloud.topics": "a/# out 1"}


def read(**given: str) -> Bridge:
    """One bridge; `_` is `.` in the names of options."""
    values = {**LEAST, **{f"cloud.{name.replace('_', '.')}": value for name, value in given.items()}}
    (bridge,) = read_all(values)
    return bridge


def read_all(values: dict[str, str]) -> tuple[Bridge, ...]:
    return read_bridges(
        fixed_settings(settings(), {f"mqtt.bridge.{name}": each for name, each in values.items()})
    )


def test_without_any_there_are_none() -> None:
    assert read_all({}) == ()


def test_the_defaults() -> None:
    assert read() == Bridge(
        name="cloud",
        addresses=(Address("broker", 1883),),
        rules=(Rule("a/#", "out", 1, "", ""),),
        version=Version.V3_1_1,
        client_id=None,
        user_name=None,
        password=None,
        clean_session=False,
        keep_alive_s=60,
        max_inflight=20,
        bridge_mark=True,
        notifications=True,
        notifications_local_only=False,
        notification_topic=None,
        backoff_s=1.0,
        backoff_max_s=30.0,
        tls=False,
        truststore=None,
        keystore=None,
        key_password=None,
        check_host_name=True,
    )


def test_every_option() -> None:
    given = {
        "address": "a:1, [::1]:2",
        "topics": 'x/# in 2, "" both 1 y z',
        "protocol.version": "5.0",
        "client.id": "me",
        "username": "u",
        "password": "p",
        "clean.session": "TRUE",
        "keep.alive.ms": "9500",
        "max.inflight": "7",
        "try.private": "false",
        "notifications": "false",
        "notifications.local.only": "true",
        "notification.topic": "n",
        "reconnect.backoff.ms": "100",
        "reconnect.backoff.max.ms": "50",
        "security.protocol": "SSL",
        "ssl.truststore.location": "/ca",
        "ssl.keystore.location": "/key",
        "ssl.key.password": "k",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert given.keys() == OPTIONS.keys()
    assert read_all({f"cloud.{name}": value for name, value in given.items()}) == (
        Bridge(
            name="cloud",
            addresses=(Address("a", 1), Address("::1", 2)),
            rules=(Rule("x/#", "in", 2, "", ""), Rule("", "both", 1, "y", "z")),
            version=Version.V5,
            client_id="me",
            user_name="u",
            password=b"p",
            clean_session=True,
            keep_alive_s=9,
            max_inflight=7,
            bridge_mark=False,
            notifications=False,
            notifications_local_only=True,
            notification_topic="n",
            backoff_s=0.1,
            backoff_max_s=0.1,
            tls=True,
            truststore="/ca",
            keystore="/key",
            key_password="k",
            check_host_name=False,
        ),
    )


def test_several_are_in_the_order_of_their_names() -> None:
    several = read_all(
        {f"{name}.{key.removeprefix('cloud.')}": value for name in "ba" for key, value in LEAST.items()}
    )
    assert [each.name for each in several] == ["a", "b"]
    assert several[0].local_client_id == "bridge.a"


def test_addresses() -> None:
    assert read(address="a").addresses == (Address("a", 1883),)
    assert read(address="a", security_protocol="SSL").addresses == (Address("a", 8883),)
    assert read(address="::1").addresses == (Address("::1", 1883),)
    assert read(address="[::1]").addresses == (Address("::1", 1883),)
    assert read(address="10.0.0.1:99,b").addresses == (Address("10.0.0.1", 99), Address("b", 1883))
    assert [str(each) for each in read(address="a:1,[::1]:2").addresses] == ["a:1", "[::1]:2"]


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [
        ("cloud.adress", "a", "after a bridge's name there is one of address, topics, "),
        ("address", "a", "after a bridge's name there is one of address, topics, "),
        ("a/b.address", "a", "a bridge cannot be called 'a/b'"),
        ("a+.address", "a", "a bridge cannot be called 'a+'"),
        ("cloud.address", "", "allowed are addresses as broker-1:1883"),
        ("cloud.address", "a:0", "allowed are addresses as broker-1:1883"),
        ("cloud.address", "a:x", "allowed are addresses as broker-1:1883"),
        ("cloud.address", "a,", "allowed are addresses as broker-1:1883"),
        ("cloud.address", "a:70000", "allowed are addresses as broker-1:1883"),
        *(
            ("cloud.address", each, "allowed are addresses as broker-1:1883")
            for each in ("::::", ":1883", "a:b:c", "mqtt://a", "[a", "[::1]x", "a b", "user@a")
        ),
        ("cloud.topics", "a up", "the direction is out, in or both"),
        ("cloud.topics", "a, ", "is not PATTERN"),
        ("cloud.protocol.version", "5", "allowed are 3.1, 3.1.1, 5.0"),
        ("cloud.clean.session", "1", "allowed are true and false"),
        ("cloud.keep.alive.ms", "4999", "allowed are whole numbers from 5000 to 65535000"),
        ("cloud.keep.alive.ms", "-1", "allowed are whole numbers"),
        ("cloud.max.inflight", "0", "allowed are whole numbers from 1 to 65535"),
        ("cloud.notification.topic", "a/#", "it is no MQTT topic: "),
        ("cloud.security.protocol", "TLS", "allowed are PLAINTEXT, SSL"),
        ("cloud.ssl.endpoint.identification.algorithm", "x", "allowed are https, nothing"),
    ],
)
def test_values_that_are_refused(place: str, value: str, why: str) -> None:
    said = why_no_option(place, value)
    assert said is not None
    assert why in said
    assert "\n" not in said


def test_values_that_are_not() -> None:
    for place, value in LEAST.items():
        assert why_no_option(place, value) is None


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"cloud.address": "a"}, "address: mqtt.bridge.cloud.topics is not set"),
        ({"cloud.topics": "a", "cloud.username": "b"}, "topics: mqtt.bridge.cloud.address is not set"),
        (
            {**LEAST, "cloud.ssl.keystore.location": "x"},
            "ssl.keystore.location: it needs mqtt.bridge.cloud.security.protocol=SSL",
        ),
        ({**LEAST, "cloud.password": "x"}, "password: mqtt.bridge.cloud.username is not set"),
        ({**LEAST, "cloud.client.id": ""}, "client.id: it is empty"),
    ],
)
def test_options_that_do_not_go_together(values: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=rf"^mqtt.bridge.cloud.{why}"):
        read_all(values)


def test_5_has_passwords_without_user_names() -> None:
    assert read(password="x", protocol_version="5.0").password == b"x"
    assert read(client_id="", clean_session="true").client_id == ""
