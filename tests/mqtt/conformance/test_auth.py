"""User names and passwords, and the enhanced authentication of 5.0 (3.1.3.5, 3.1.3.6, 3.15, 4.12)."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

import pytest

from leafcuttr_sdk import Broker, Plugin
from leafcuttr_sdk.authentication import (
    Authenticated,
    AuthenticatorSpec,
    Challenge,
    Credentials,
    Principal,
    Refused,
    Step,
)
from mqtt.conformance import wire
from mqtt.conformance.raw import Raw, fresh
from mqtt.conformance.under_test import Opened, Started

normative = pytest.mark.normative
both = pytest.mark.parametrize("version", [4, 5])

METHOD = "X-SUM"


class Exchange:
    """The server asks for the sum of two digits, as often as the client wants to hear it."""

    def __init__(self) -> None:
        self.asked = False

    async def step(self, data: bytes) -> Step:
        if not self.asked or data == b"again":
            self.asked = True
            return Challenge(b"2+3")
        return (
            Authenticated(Principal("User", "sums"), data=b"right") if data == b"5" else Refused("wrong sum")
        )


class Sums:
    async def authenticate(self, credentials: Credentials) -> Authenticated | Refused | None:
        return None

    def begin(self, mechanism: str) -> Exchange:
        return Exchange()


def plugin() -> ModuleType:
    module: Any = ModuleType("sums_plugin", "Authentication by sums.")

    def leafcuttr_register_authenticators(broker: Broker) -> Iterable[AuthenticatorSpec]:
        return [AuthenticatorSpec("sums", "Asks for a sum.", Sums, mechanisms=(METHOD,))]

    module.PLUGIN = Plugin("sums", 1, "asks for a sum")
    module.leafcuttr_register_authenticators = leafcuttr_register_authenticators
    return module  # type: ignore[no-any-return]


SETTINGS = {"mqtt.auth": "sasl", "mqtt.authenticators": "sums"}
WITH_METHOD = [("auth_method", METHOD)]


def with_data(data: bytes) -> list[tuple[str, Any]]:
    return [*WITH_METHOD, ("auth_data", data)]


def begun(broker: Opened, **options: Any) -> Raw:
    """CONNECT with the method, and the first AUTH of the server."""
    raw = broker.open()
    raw.send(wire.connect(5, options.pop("client_id", None) or fresh(), properties=WITH_METHOD, **options))
    got = raw.expect(wire.AUTH)
    assert (got.reason, got.one("auth_method"), got.one("auth_data")) == (0x18, METHOD, b"2+3")
    return raw


@pytest.fixture
def pair(leafcuttr: Started) -> Any:
    with leafcuttr({"mqtt.auth.username": "us\u00e9r", "mqtt.auth.password": "secret"}) as found:
        yield found


@normative("3.1.1", "MQTT-3.2.2-4", "MQTT-3.2.2-5", "MQTT-3.1.2-19", "MQTT-3.1.2-21")
@normative("5.0", "MQTT-3.1.4-2", "MQTT-3.2.2-6", "MQTT-3.2.2-7", "MQTT-3.2.2-8")
@both
def test_user_name_and_password(pair: Opened, version: int) -> None:
    pair.client(version, user="us\u00e9r", password=b"secret")
    wrong: list[dict[str, Any]] = [
        {},
        {"user": "us\u00e9r"},
        {"user": "us\u00e9r", "password": ""},
        {"user": "us\u00e9r", "password": "Secret"},
        {"user": "", "password": "secret"},
        {"user": "secret", "password": "us\u00e9r"},
        {"user": "us\u00e9r", "password": b"secret\0"},
    ]
    for credentials in wrong:
        raw = pair.open(version)
        raw.send(wire.connect(version, fresh(), **credentials))
        got = raw.refused(*((4, 5) if version == 4 else (0x86, 0x87)))
        assert got is not None
        assert got.one("reason_string") is None or "secret" not in got.one("reason_string")


@normative("3.1.1", "MQTT-3.1.4-5", "MQTT-3.1.2-12")
@normative("5.0", "MQTT-3.1.4-6", "MQTT-3.1.4-2")
@both
def test_one_that_is_refused_does_nothing(pair: Opened, version: int) -> None:
    """It takes nobody over, ends no session, publishes neither messages nor a will."""
    watcher = pair.client(version, "watcher", user="us\u00e9r", password="secret")
    watcher.subscribe("t/#")
    raw = pair.open(version)
    raw.send(
        wire.connect(version, "watcher", user="us\u00e9r", password="no", will=wire.Will("t/will", b"w")),
        wire.publish(version, "t/message", b"m"),
        wire.subscribe(version, 1, [("t/#", 0)]),
    )
    assert raw.refused(4, 5, 0x86, 0x87) is not None
    assert watcher.so_far(watcher) == []


@normative("3.1.1", "MQTT-3.1.2-18", "MQTT-3.1.2-20")
@normative("5.0", "MQTT-3.1.2-16", "MQTT-3.1.2-18")
@both
def test_credentials_are_taken_where_none_are_asked_for(broker: Opened, version: int) -> None:
    assert broker.client(version, user="anybody", password="anything").ping() == []
    assert broker.client(version, user="anybody").ping() == []
    if version == 5:
        assert broker.client(5, password="token").ping() == []


@normative("5.0", "MQTT-4.12.0-1", "MQTT-3.2.2-8", "MQTT-4.13.2-1")
def test_a_method_that_is_not_supported(broker: Opened) -> None:
    raw = broker.open()
    raw.send(wire.connect(5, fresh(), properties=[("auth_method", "GS2-KRB5"), ("auth_data", b"x")]))
    raw.refused(0x8C, 0x87)


@normative("5.0", "MQTT-4.12.0-6", "MQTT-4.13.1-1")
@pytest.mark.parametrize("reason", [0x00, 0x18, 0x19])
def test_without_a_method_there_is_no_auth(broker: Opened, reason: int) -> None:
    """The server sends none, CONNACK names none, and AUTH of the client is a protocol error."""
    raw = broker.client()
    assert raw.connack is not None
    assert raw.connack.one("auth_method") is None
    raw.send(wire.auth(reason, with_data(b"x")))
    raw.ended(0x82)


@pytest.mark.setting("mqtt.auth", "mqtt.authenticators")
@normative("5.0", "MQTT-4.12.0-2", "MQTT-4.12.0-5", "MQTT-3.15.2-1", "MQTT-3.2.0-1", "MQTT-3.1.4-5")
def test_an_exchange(leafcuttr: Started) -> None:
    with leafcuttr(SETTINGS, [plugin()]) as broker:
        raw = begun(broker)
        raw.send(wire.auth(0x18, with_data(b"again")))
        got = raw.expect(wire.AUTH)
        assert (got.reason, got.one("auth_method")) == (0x18, METHOD)
        raw.send(wire.auth(0x18, with_data(b"5")))
        got = raw.expect(wire.CONNACK)
        assert (got.reason, got.one("auth_method"), got.one("auth_data")) == (0, METHOD, b"right")
        assert raw.ping() == []


@normative("5.0", "MQTT-4.12.0-4", "MQTT-3.2.2-7", "MQTT-3.14.0-1", "MQTT-4.12.0-1")
def test_an_exchange_that_fails(leafcuttr: Started) -> None:
    with leafcuttr(SETTINGS, [plugin()]) as broker:
        raw = begun(broker)
        raw.send(wire.auth(0x18, with_data(b"6")))
        assert raw.refused(0x87, 0x86) is not None
        raw = broker.open()
        raw.send(wire.connect(5, fresh(), properties=[("auth_method", "X-OTHER")]))
        assert raw.refused(0x8C) is not None
        raw = broker.open()
        raw.send(wire.connect(5, fresh()))
        assert raw.refused(0x87, 0x8C) is not None


@pytest.mark.one_in(3)
@normative("5.0", "MQTT-4.12.0-5", "MQTT-3.14.0-1", "MQTT-3.2.0-1", "MQTT-4.13.1-1")
@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(wire.PING, id="ping"),
        pytest.param(wire.publish(5, "t", b"p"), id="publish"),
        pytest.param(wire.auth(0x18, [("auth_method", "X-OTHER"), ("auth_data", b"5")]), id="method"),
        pytest.param(wire.auth(0x18, [("auth_data", b"5")]), id="no method"),
        pytest.param(wire.auth(0x19, with_data(b"5")), id="re-authentication"),
        pytest.param(wire.auth(0x00, with_data(b"5")), id="success"),
        pytest.param(wire.auth(0x42, with_data(b"5")), id="reason of none"),
        pytest.param(wire.auth(0x18, with_data(b"5"), flags=1), id="flags"),
        pytest.param(wire.auth(0x18, [*WITH_METHOD, *with_data(b"5")]), id="method twice"),
    ],
)
def test_what_may_not_come_in_an_exchange(leafcuttr: Started, packet: bytes) -> None:
    with leafcuttr(SETTINGS, [plugin()]) as broker:
        raw = begun(broker)
        raw.send(packet)
        raw.refused(0x81, 0x82, 0x87, 0x8C)


@normative("5.0", "MQTT-3.1.4-6")
def test_a_client_may_leave_in_an_exchange(leafcuttr: Started) -> None:
    with leafcuttr(SETTINGS, [plugin()]) as broker:
        raw = begun(broker, client_id="leaves")
        raw.send(wire.disconnect(5))
        assert raw.rest() == []
        second = begun(broker, client_id="stays")
        third = begun(broker, client_id="stays")
        for raw in (second, third):
            raw.send(wire.auth(0x18, with_data(b"5")))
            raw.expect(wire.CONNACK)
        second.ended(0x8E)


@normative("5.0", "MQTT-4.12.1-2", "MQTT-4.12.0-5", "MQTT-3.15.2-1")
def test_re_authentication(leafcuttr: Started) -> None:
    """Messages go on meanwhile. One that fails ends the connection, with a DISCONNECT that says so."""
    with leafcuttr(SETTINGS, [plugin()]) as broker:
        raw = begun(broker)
        raw.send(wire.auth(0x18, with_data(b"5")))
        raw.expect(wire.CONNACK)
        raw.subscribe(("t", 1))
        raw.send(wire.auth(0x19, WITH_METHOD))
        got = raw.expect(wire.AUTH)
        assert (got.reason, got.one("auth_method"), got.one("auth_data")) == (0x18, METHOD, b"2+3")
        raw.publish("t", b"meanwhile", 1)
        assert raw.message().payload == b"meanwhile"
        raw.send(wire.auth(0x18, with_data(b"5")))
        got = raw.expect(wire.AUTH)
        assert (got.reason, got.one("auth_method")) == (0x00, METHOD)
        raw.send(wire.auth(0x19, WITH_METHOD))
        raw.expect(wire.AUTH)
        raw.send(wire.auth(0x18, with_data(b"7")))
        raw.ended(0x87, 0x86)


@normative("5.0", "MQTT-4.12.1-2", "MQTT-4.13.1-1")
def test_re_authentication_by_another_method(leafcuttr: Started) -> None:
    with leafcuttr(SETTINGS, [plugin()]) as broker:
        raw = begun(broker)
        raw.send(wire.auth(0x18, with_data(b"5")))
        raw.expect(wire.CONNACK)
        raw.send(wire.auth(0x19, [("auth_method", "X-OTHER")]))
        raw.ended(0x82, 0x8C)


@normative("5.0", "MQTT-3.14.4-3")
def test_a_client_may_leave_while_it_authenticates_anew(leafcuttr: Started) -> None:
    """Both in one segment: it has left as it should, so its will is not published."""
    with leafcuttr({**SETTINGS, "mqtt.auth": "sasl,none"}, [plugin()]) as broker:
        watcher = broker.client()
        watcher.subscribe("wills/#")
        raw = begun(broker, will=wire.Will("wills/x", b"w"))
        raw.send(wire.auth(0x18, with_data(b"5")))
        raw.expect(wire.CONNACK)
        raw.send(wire.auth(0x19, WITH_METHOD), wire.disconnect(5))
        assert raw.rest() == []
        assert watcher.so_far(broker.client()) == []
