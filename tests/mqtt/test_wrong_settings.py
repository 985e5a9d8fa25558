"""Settings that are wrong: each stops the start, and `leafcuttr config check`, with one line that says what was wrong,
where it came from and what is allowed."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import trustme

from leafcuttr.config.findings import Level
from leafcuttr.embedded import open_broker
from leafcuttr.errors import ConfigError
from leafcuttr.plugins.catalogue import examine_all
from leafcuttr_mqtt import leafcuttr_register_settings
from leafcuttr_sdk.settings import Setting, Type
from support.broker_process import clean_environ
from support.forked_start import run_leafcuttr

ON = "lc.mqtt.broker.enable"
SETTINGS = {each.name: each for each in leafcuttr_register_settings()}
NUMBERS = [each.name for each in SETTINGS.values() if each.type in (Type.INT, Type.LONG)]

EMPTY = {
    # What an empty value means; any other one is refused.
    **{f"mqtt{of}.host": "every address" for of in ("", ".tls", ".ws", ".wss")},
    **{
        f"mqtt{of}.{name}": "none"
        for of in ("", ".tls", ".ws", ".wss")
        for name in (
            "unix.path",
            "ssl.keystore.location",
            "ssl.truststore.location",
            "ssl.key.password",
        )
    },
    "mqtt.ws.allowed.origins": "those of the same host",
    "mqtt.wss.allowed.origins": "those of the same host",
    "mqtt.authenticators": "none",
    "mqtt.egress.filters": "none",
    "mqtt.kafka.client.id": "none",
    "mqtt.topic.key": "no key",
}
OF_FAMILIES = {
    # A member of each family, and a value that it takes.
    "mqtt.topic.mapping.<mqtt filter>": ("a/+", "t"),
    "mqtt.topic.key.<mqtt filter>": ("a/+", "{1}"),
    "mqtt.topic.egress.<kafka topic>": ("t", "down/{key}"),
    "mqtt.kafka.property.<librdkafka property>": ("linger.ms", "5"),
    "mqtt.bridge.<name and option>": ("b.keep.alive.ms", "5000"),
}
MEMBERS_EMPTY = {"mqtt.topic.key.a/+": "no key", "mqtt.kafka.property.linger.ms": "librdkafka's to say"}


def errors(*settings: str) -> dict[str, str]:
    """What `config check` calls an error, by the name of the setting."""
    found = examine_all(None, {}, [f"{ON}=true", *settings])[1]
    lines = {each.key: each.line for each in found if each.level is Level.ERROR}
    assert not any("\n" in line for line in lines.values())
    return lines


def test_numbers_and_booleans_that_are_none() -> None:
    typed = [*NUMBERS, *(each.name for each in SETTINGS.values() if each.type is Type.BOOLEAN)]
    assert len(typed) > 30
    for value in ("", "many", "1.5", "0x10"):
        found = errors(*(f"{name}={value}" for name in typed))
        assert set(typed) <= set(found), value
        for name in typed:
            allowed = "true or false" if SETTINGS[name].type is Type.BOOLEAN else "a whole number"
            assert found[name].startswith(f"{name}={value} (-o): allowed is {allowed}")


def test_numbers_out_of_range() -> None:
    for name in NUMBERS:
        setting = SETTINGS[name]
        assert setting.minimum is not None and setting.maximum is not None, f"{name} has no range"
    for least in (True, False):
        values = {
            name: int(SETTINGS[name].minimum or 0) - 1 if least else int(SETTINGS[name].maximum or 0) + 1
            for name in NUMBERS
        }
        found = errors(*(f"{name}={value}" for name, value in values.items()))
        for name, value in values.items():
            assert found[name].startswith(f"{name}={value} (-o): allowed is a whole number from "), name


def texts() -> list[Setting]:
    return [
        each
        for each in SETTINGS.values()
        if each.type in (Type.STRING, Type.PASSWORD, Type.LIST) and not each.name.endswith(">")
    ]


def test_empty_texts_are_refused_or_mean_something() -> None:
    found = errors(*(f"{each.name}=" for each in texts()))
    assert {each.name for each in texts()} - set(found) == set(EMPTY)


def test_choices() -> None:
    of_choice = [each for each in texts() if each.choices]
    assert {"mqtt.refused.v3", "mqtt.wss.ssl.client.auth"} <= {each.name for each in of_choice}
    found = errors(*(f"{each.name}=perhaps" for each in of_choice))
    for each in of_choice:
        assert f"allowed is one of {', '.join(each.choices)}" in found[each.name]


def test_members_of_families() -> None:
    families = {name for name in SETTINGS if name.endswith(">")}
    assert families == set(OF_FAMILIES)
    whole = {name.partition("<")[0] + member: value for name, (member, value) in OF_FAMILIES.items()}
    bridge = ["mqtt.bridge.b.address=a", "mqtt.bridge.b.topics=a"]
    assert errors(*bridge, *(f"{name}={value}" for name, value in whole.items())) == {}
    # Nothing in the place of the brackets.
    for name in families:
        prefix = name.partition("<")[0]
        (line,) = errors(f"{prefix}=x").values()
        shown = "[hidden]" if SETTINGS[name].type is Type.PASSWORD else "x"
        assert line == (
            f"{prefix}={shown} (-o): after {prefix} there has to be something, in the place of "
            f"{name.removeprefix(prefix)}"
        )
    # An empty value.
    found = errors(*bridge, *(f"{name}=" for name in whole))
    assert set(whole) - set(found) == set(MEMBERS_EMPTY)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {"mqtt.topic.mapping.": "x"},
            "mqtt.topic.mapping.=x ({}): after mqtt.topic.mapping. there has to be something, in the place of "
            "<mqtt filter>",
        ),
        (
            {"mqtt.topic.mapping.a/#/b": "x"},
            "mqtt.topic.mapping.a/#/b=x ({}): a/#/b is no topic filter: ",
        ),
        (
            {"mqtt.topic.mapping.a": "b/c"},
            "mqtt.topic.mapping.a=b/c ({}): the name of a Kafka topic has letters",
        ),
        (
            {"mqtt.topic.mapping.a": "__mqtt_queue"},
            "mqtt.topic.mapping.a=__mqtt_queue ({}): names that begin with __ are those of internal topics",
        ),
        (
            {"mqtt.topic.egress.__mqtt_queue": "a"},
            "mqtt.topic.egress.__mqtt_queue=a ({}): names that begin with __ are those of internal topics",
        ),
        (
            {"mqtt.topic.egress.t": "$SYS/a"},
            "mqtt.topic.egress.t=$SYS/a ({}): topics that begin with $ are the broker's own",
        ),
        (
            {"mqtt.topic.key.a": "x", "mqtt.topic.mapping.b": "t"},
            "mqtt.topic.key.a=x ({}): no mapping has this filter: mqtt.topic.mapping.a is not set",
        ),
        (
            {"mqtt.bridge.b.address": "::::", "mqtt.bridge.b.topics": "a"},
            "mqtt.bridge.b.address=[hidden] ({}): allowed are addresses as broker-1:1883, 10.0.0.1 or [::1]:1883, "
            "separated by commas",
        ),
        (
            {"mqtt.bridge.b.address": "a"},
            "mqtt.bridge.b.address=[hidden] ({}): mqtt.bridge.b.topics is not set",
        ),
        (
            {"mqtt.tls.port": "0"},
            "mqtt.tls.port=0 ({}): it opens a listener for TLS, and mqtt.tls.ssl.keystore.location is not set",
        ),
        (
            {"mqtt.wss.unix.path": "/tmp/x"},
            "mqtt.wss.unix.path=/tmp/x ({}): it opens a listener for TLS, and mqtt.wss.ssl.keystore.location is not "
            "set",
        ),
        (
            {"mqtt.auth.username": "device"},
            "mqtt.auth.username=device ({}): mqtt.auth.password is not set: set both or neither",
        ),
        (
            {"mqtt.auth.username": "device", "mqtt.auth.password": ""},
            "mqtt.auth.password=[hidden] ({}): it is empty; without it and its counterpart every client is accepted",
        ),
        (
            {"mqtt.authenticators": "http-passwords"},
            "mqtt.authenticators=http-passwords ({}): mqtt.auth offers no way to authenticate: set it too, as "
            "mqtt.auth=basic",
        ),
        (
            {"mqtt.replay.enable": "true", "mqtt.kafka.bootstrap.servers": "a:1"},
            "mqtt.replay.enable=true ({}): it reads Kafka topics of this broker, and mqtt.kafka.bootstrap.servers has "
            "messages stored in another cluster",
        ),
        (
            {"mqtt.kafka.bootstrap.servers": "a"},
            "mqtt.kafka.bootstrap.servers=a ({}): allowed are addresses as kafka-1:9092, separated by commas",
        ),
        (
            {"mqtt.kafka.property.acks": "1"},
            "mqtt.kafka.property.acks=[hidden] ({}): acks is set by the broker itself",
        ),
    ],
)
async def test_what_stops_the_start_and_the_check(
    tmp_path: Path, settings: dict[str, str], line: str
) -> None:
    (found,) = errors(*(f"{name}={value}" for name, value in settings.items())).values()
    assert found.startswith(line.format("-o"))
    with pytest.raises(ConfigError) as raised:
        async with open_broker({"log.dirs": str(tmp_path), ON: True, **settings}):
            pass
    assert str(raised.value).startswith(line.format("settings"))


def test_where_the_broker_is_off_nothing_has_to_go_together() -> None:
    found = examine_all(None, {}, ["mqtt.auth.username=device", "mqtt.topic.key.a=x"])[1]
    assert [each for each in found if each.level is Level.ERROR] == []


def served(data: Path, *settings: str) -> list[str]:
    """The lines of a broker that does not start."""
    words = [
        f"log.dirs={data}",
        "listeners=PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port=0",
        f"{ON}=true",
        *settings,
    ]
    done = run_leafcuttr(
        ("serve", *(word for each in words for word in ("-o", each))), environ=clean_environ()
    )
    assert done.returncode == 1, done.stdout
    return [line for line in done.stderr.splitlines() if "INFO" not in line]


@pytest.mark.long
def test_what_only_a_start_can_find_is_one_line_too(tmp_path: Path) -> None:
    pem = tmp_path / "server.pem"
    trustme.CA().issue_cert("127.0.0.1").cert_chain_pems[0].write_to_path(pem)  # without its key
    here = ("mqtt.host=127.0.0.1", "mqtt.port=0")
    tls = "mqtt.tls.ssl.keystore.location"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = {
            (
                "mqtt.host=no.such.host.invalid",
            ): "listener mqtt: the host 'no.such.host.invalid' is unknown: ",
            (
                "mqtt.host=127.0.0.1",
                f"mqtt.port={port}",
            ): f"listener mqtt cannot open 127.0.0.1 port {port}: another "
            "program listens there (choose another port with -o mqtt.port=...)",
            (
                *here,
                "mqtt.tls.port=0",
                f"{tls}={tmp_path}/none.pem",
            ): f"{tls}={tmp_path}/none.pem: No such file",
            (*here, "mqtt.tls.port=0", f"{tls}={pem}"): f"{tls}={pem}: ",
            (
                *here,
                "mqtt.auth=basic",
                "mqtt.authenticators=nobody",
            ): "mqtt.authenticators names 'nobody', which no plugin brings that is on; there is broker",
            (
                *here,
                "mqtt.bridge.b.address=a",
                "mqtt.bridge.b.topics=a",
                "mqtt.bridge.b.security.protocol=SSL",
                f"mqtt.bridge.b.ssl.truststore.location={tmp_path}/none.pem",
            ): f"mqtt.bridge.b.ssl.truststore.location: {tmp_path}/none.pem cannot be used: ",
            (
                *here,
                "mqtt.kafka.bootstrap.servers=127.0.0.1:1",
                "mqtt.kafka.property.nonsense=1",
            ): "the client of the other Kafka cluster cannot be made: No such configuration property: "
            '"nonsense" (mqtt.kafka.property.*)',
        }
        for number, (settings, line) in enumerate(cases.items()):
            lines = served(tmp_path / str(number), *settings)
            assert len(lines) == 1, (settings, lines)
            assert lines[0].startswith(f"leafcuttr: service mqtt of plugin mqtt: {line}")
