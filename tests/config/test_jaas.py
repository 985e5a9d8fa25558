"""JAAS entries as Kafka's documentation has them, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.config.jaas import JaasError, parse_entry, parse_file

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_the_entry_of_a_setting() -> None:
    found = parse_entry(
        f'{MODULE} required username="admin" password="secret"\n user_admin="admin-secret"\n user_al=x1;'
    )
    assert found.module == MODULE
    assert found.options["username"] == "admin"
    assert found.users == {"admin": "admin-secret", "al": "x1"}


def test_a_file() -> None:
    found = parse_file(
        """
        // clients
        sasl_ssl.KafkaServer { /* of one listener */
            org.apache.kafka.common.security.plain.PlainLoginModule Required
            # another kind of comment
            user_a="1; 2 \\" 3";
        };
        KafkaServer {
            com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/etc/k";
            org.apache.kafka.common.security.plain.PlainLoginModule required user_b="2";
        };
        """
    )
    assert list(found) == ["sasl_ssl.KafkaServer", "KafkaServer"]
    assert found["sasl_ssl.KafkaServer"][0].users == {"a": '1; 2 " 3'}
    assert [each.users for each in found["KafkaServer"]] == [{}, {"b": "2"}]


def test_the_file_of_the_old_manual() -> None:
    """With the section for ZooKeeper, which nobody takes."""
    entry = """
        com.sun.security.auth.module.Krb5LoginModule required
        useKeyTab=true
        storeKey=true
        keyTab="/etc/security/keytabs/%s.keytab"
        principal="kafka/kafka1.hostname.com@EXAMPLE.COM";
    """
    sections = {"KafkaServer": "kafka_server", "Client": "kafka_client"}
    server, client = (f"{name} {{{entry % file}}};\n" for name, file in sections.items())
    found = parse_file(f"{server}\n// Zookeeper client authentication\n{client}")
    assert list(found) == ["KafkaServer", "Client"]
    (own,) = found["KafkaServer"]
    assert own.options == {
        "useKeyTab": "true",
        "storeKey": "true",
        "keyTab": "/etc/security/keytabs/kafka_server.keytab",
        "principal": "kafka/kafka1.hostname.com@EXAMPLE.COM",
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "begins with a module and a word such as required"),
        ("Module", "begins with a module"),
        ("Module wanted;", "begins with a module"),
        ("Module required", "the entry of Module lacks ;"),
        ("Module required a;", "the option a lacks ="),
        ("Module required a=;", "the option a has no value"),
        ('Module required a="secret;', "a quotation mark has no other"),
        ('Module required user_a="b" "secret";', "the option in quotation marks lacks ="),
        ("Module required; more", "one entry is expected, and more follows behind its ;"),
    ],
)
def test_what_is_none(text: str, why: str) -> None:
    with pytest.raises(JaasError, match=why) as caught:
        parse_entry(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["A", "A {", "A { Module required; }", "A { Module required }", "}"])
def test_files_that_are_none(text: str) -> None:
    with pytest.raises(JaasError):
        parse_file(text)


@given(st.dictionaries(st.text("abc_", min_size=1), st.text(), max_size=4))
def test_any_value_in_quotation_marks(options: dict[str, str]) -> None:
    def quoted(value: str) -> str:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    text = " ".join(f"{name}={quoted(value)}" for name, value in options.items())
    assert dict(parse_entry(f"M required {text};").options) == options


@given(st.text('ab{}; ="\\/*#\n'))
def test_any_text(text: str) -> None:
    for parse in (parse_entry, parse_file):
        try:
            parse(text)
        except JaasError as error:
            assert "\n" not in str(error).replace(text, "")
