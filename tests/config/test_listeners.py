"""Listeners: what is opened, what clients are told, what is refused."""

import pytest

from leafcuttr.config.listeners import Listener, advertised_by_host_name, host_name, parse_listeners
from leafcuttr.config.settings import Settings
from leafcuttr.errors import ConfigError

SHORT = {"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,S:SASL_SSL,CONTROLLER:PLAINTEXT"}


def parse(listeners: str, advertised: str | None = None, **more: str) -> tuple[Listener, ...]:
    given = {"listeners": listeners, **SHORT, **{name.replace("_", "."): text for name, text in more.items()}}
    if advertised is not None:
        given["advertised.listeners"] = advertised
    return parse_listeners(Settings(given))


def test_the_default_is_this_machine_only() -> None:
    assert parse_listeners(Settings()) == (Listener("PLAINTEXT", "localhost", 9092, "localhost", 9092),)


def test_ipv6_has_brackets_outside_only() -> None:
    (listener,) = parse("A://[::1]:9092")
    assert listener == Listener("A", "::1", 9092, "::1", 9092)
    assert str(listener) == "A://[::1]:9092"
    assert listener.advertised == "[::1]:9092"


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]"])
def test_every_interface_is_advertised_by_the_name_of_the_machine(host: str) -> None:
    (listener,) = parse(f"A://{host}:9092")
    assert listener.advertised_host == host_name()
    assert advertised_by_host_name(Settings({"listeners": f"A://{host}:9092"})) == ["A"]


def test_advertised_addresses_belong_to_their_listener() -> None:
    one, two = parse("A://0.0.0.0:9092,b://0.0.0.0:9093", "B://kafka:9093,A://localhost:19092")
    assert (one.name, one.host, one.advertised) == ("A", "0.0.0.0", "localhost:19092")
    assert (two.name, two.port, two.advertised) == ("B", 9093, "kafka:9093")


def test_the_listener_of_the_controller_is_not_opened() -> None:
    (listener,) = parse("CONTROLLER://localhost:9091,A://localhost:9092")
    assert listener.name == "A"


def test_a_free_port_is_known_after_it_is_bound() -> None:
    first, second = parse("A://127.0.0.1:0,B://127.0.0.1:0")
    assert first.bound(12345) == Listener("A", "127.0.0.1", 12345, "127.0.0.1", 12345)
    (told,) = parse("A://127.0.0.1:0", "A://proxy:80")
    assert told.bound(5).advertised == "proxy:80"
    assert second.port == 0


def test_ipv4_and_ipv6_may_share_a_port() -> None:
    assert len(parse("A://127.0.0.1:9092,B://[::1]:9092")) == 2


@pytest.mark.parametrize(
    ("listeners", "advertised", "reason"),
    [
        ("", None, "at least one listener"),
        ("A//x:1", None, "not NAME://host:port"),
        ("A://x", None, "not NAME://host:port"),
        ("A://x:99999", None, "port 99999"),
        ("A://x:-1", None, "port -1"),
        ("A://x:1,A://x:2", None, "A comes twice"),
        ("A://x:1,a://x:2", None, "A comes twice"),
        ("A://x:1,B://y:1", None, "port 1 comes twice"),
        ("A://127.0.0.1:1,B://127.0.0.2:1", None, "port 1 comes twice"),
        ("C://x:1", None, "no protocol for C"),
        ("CONTROLLER://x:1", None, "for clients"),
        ("A://x:1", "B://x:1", "B is not in listeners"),
        ("A://x:1", "A://0.0.0.0:1", "nobody can connect to 0.0.0.0"),
        ("A://x:1", "A://[::]:1", "nobody can connect to ::"),
        ("A://x:1", "A:1", "not NAME://host:port"),
    ],
)
def test_one_line_says_what_is_wrong(listeners: str, advertised: str | None, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(listeners, advertised)
    assert reason in str(caught.value)
    assert str(caught.value).startswith(("listeners=", "advertised.listeners="))
    assert "(-o)" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["A", "A:NOPE", "A:PLAINTEXT,a:PLAINTEXT", ":PLAINTEXT"])
def test_a_bad_map_of_protocols(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^listener\.security\.protocol\.map="):
        parse("A://x:1", **{"listener.security.protocol.map": text})


def test_the_listener_between_brokers_has_to_exist() -> None:
    assert parse("A://x:1", inter_broker_listener_name="A")
    with pytest.raises(ConfigError, match=r"^inter\.broker\.listener\.name=B .*A$"):
        parse("A://x:1", inter_broker_listener_name="B")
