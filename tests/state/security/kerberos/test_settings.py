"""What a listener's settings say of GSSAPI, and the lines that stop the start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leafcuttr.config.settings import Settings
from leafcuttr.errors import StartError
from leafcuttr.state.security.kerberos.names import parse_principal
from leafcuttr.state.security.kerberos.settings import ServiceKey, kerberos_settings

OF_LISTENER = "listener.name.in."
JAAS = f"{OF_LISTENER}gssapi.sasl.jaas.config"
SERVICE, RULES = "sasl.kerberos.service.name", "sasl.kerberos.principal.to.local.rules"
MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
KEY = 'useKeyTab=true storeKey=true keyTab="/k" principal="kafka/h@R"'
GIVEN = {JAAS: f"{MODULE} {KEY};"}


def short(given: dict[str, str], principal: str) -> str:
    return kerberos_settings(Settings({**GIVEN, **given}), "IN").rules.short_name(
        parse_principal(principal), "R"
    )


def test_the_key_of_the_service() -> None:
    found = kerberos_settings(Settings(GIVEN), "IN")
    assert (found.key, found.realm) == (ServiceKey("/k", "kafka/h@R"), "R")


def test_the_narrowest_rules_count() -> None:
    common = {RULES: "RULE:[1:common]"}
    assert short({}, "alice@R") == "alice"
    assert short(common, "alice@R") == "common"
    assert short({**common, f"{OF_LISTENER}{RULES}": "RULE:[1:own],DEFAULT"}, "alice@R") == "own"
    narrow = {f"{OF_LISTENER}{RULES}": "DEFAULT", f"{OF_LISTENER}gssapi.{RULES}": "RULE:[1:narrow]"}
    assert short({**common, **narrow}, "alice@R") == "narrow"


def test_the_file_that_kafka_opts_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(
        "KafkaServer { PlainLoginModule required; IBM.Krb5LoginModule required useKeyTab=true keyTab=f "
        "principal=kafka/file@R; }; "
        "in.KafkaServer { Krb5LoginModule required useKeyTab=true keyTab=i principal=kafka/in@R; };"
    )
    monkeypatch.setenv("KAFKA_OPTS", f"-Xmx1G -Djava.security.auth.login.config={file}")
    assert kerberos_settings(Settings({}), "IN").key == ServiceKey("i", "kafka/in@R")
    assert kerberos_settings(Settings({}), "OUT").key == ServiceKey("f", "kafka/file@R")
    assert kerberos_settings(Settings(GIVEN), "IN").key.keytab == "/k"
    file.unlink()
    monkeypatch.setenv("KAFKA_OPTS", "-Djava.security.auth.login.config=/nowhere")
    with pytest.raises(StartError, match="KAFKA_OPTS: /nowhere: No such file or directory"):
        kerberos_settings(Settings({}), "IN")


def test_a_service_name_that_fits() -> None:
    given = {JAAS: f'{MODULE} {KEY} serviceName="kafka";', SERVICE: "kafka"}
    assert kerberos_settings(Settings(given), "IN").key.principal == "kafka/h@R"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {},
            "the listener IN offers GSSAPI, and nothing names the key of the service: "
            "listener.name.in.gssapi.sasl.jaas.config=com.sun",
        ),
        ({JAAS: "x.PlainLoginModule required;"}, "nothing names the key"),
        ({JAAS: f"{MODULE} useKeyTab=true principal=kafka/h@R;"}, f"{JAAS}: Krb5LoginModule needs keyTab="),
        ({JAAS: f"{MODULE} useKeyTab=true keyTab=k;"}, f"{JAAS}: Krb5LoginModule needs principal="),
        ({JAAS: f"{MODULE} keyTab=k principal=kafka/h@R;"}, "needs useKeyTab=true"),
        ({JAAS: f"{MODULE} useKeyTab=false keyTab=k principal=kafka/h@R;"}, "needs useKeyTab=true"),
        ({JAAS: f"{MODULE} useKeyTab=true keyTab=k principal=kafka@R;"}, "kafka@R is not service/host@REALM"),
        ({JAAS: f"{MODULE} useKeyTab=true keyTab=k principal=kafka/h;"}, "kafka/h is not service/host@REALM"),
        ({JAAS: f"{MODULE} useKeyTab=true keyTab=k principal=a/b/c@R;"}, f"{JAAS}: principal: 'a/b/c@R' is"),
        (
            {**GIVEN, SERVICE: "broker"},
            f"{SERVICE}=broker: the principal of the listener IN is kafka/h@R",
        ),
        ({**GIVEN, f"{OF_LISTENER}{SERVICE}": "x"}, f"{OF_LISTENER}{SERVICE}=x: the principal"),
        ({JAAS: f"{MODULE} {KEY} serviceName=x;"}, f"{JAAS}: serviceName=x: the principal"),
        ({**GIVEN, RULES: "DEFAULT,RULE"}, f"{RULES}: 'RULE' is neither DEFAULT nor"),
        ({**GIVEN, f"{OF_LISTENER}{RULES}": "x"}, f"{OF_LISTENER}{RULES}: 'x' is"),
    ],
)
def test_what_stops_the_start(given: dict[str, str], why: str) -> None:
    with pytest.raises(StartError, match=re.escape(why)) as refused:
        kerberos_settings(Settings(given), "IN")
    assert "\n" not in str(refused.value)
