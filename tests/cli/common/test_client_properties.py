"""Settings of clients as a person gives them to a command."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from leafcuttr.cli.common.client_properties import all_properties, settings_of
from leafcuttr.cli.common.target import Target

_LINES = '# how to get in\nsasl.jaas.config = M required \\\n  username="a" password="b\\\\c";\na\\ b: c\n'


def test_a_file_of_java(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(_LINES)
    assert all_properties(("x=1",), file) == (
        'sasl.jaas.config=M required username="a" password="b\\c";',
        "a b=c",
        "x=1",
    )


def test_another_file_is_taken_as_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "kcat.conf"
    file.write_text("# how to get in\n\n sasl.password = b\\\\c\\\n! more\nlinger.ms=5=6\n")
    assert all_properties((), file) == ("sasl.password=b\\\\c\\", "linger.ms=5=6")
    assert all_properties(("x=1",), None) == ("x=1",)


@pytest.mark.parametrize("name", ["client.properties", "client.conf"])
@pytest.mark.parametrize("text", [b"open sesame\n", b"a=caf\xe9\n"])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, text: bytes) -> None:
    file = tmp_path / name
    file.write_bytes(text)
    with pytest.raises(click.UsageError) as caught:
        all_properties((), file)
    assert "--client-config" in caught.value.message
    assert str(file) in caught.value.message
    assert "sesame" not in caught.value.message
    with pytest.raises(click.UsageError):
        all_properties((), tmp_path / "none")


def test_what_is_given_becomes_the_settings_of_our_client() -> None:
    given = ("security.protocol=SASL_SSL", "sasl.mechanisms=PLAIN", "sasl.username=a", "sasl.password=b=c")
    found = settings_of(Target("hub:1,two", given))
    assert found.servers == "hub:1,two:9092"
    assert found.client_id == "leafcuttr-cli"
    assert found.sasl is not None
    assert found.sasl.password == "b=c"
    assert settings_of(Target("hub", ("client.id=me", "linger.ms=5", "debug=all"))).client_id == "me"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("linger.m=5", 'No such configuration property: "linger.m" (did you mean "linger.ms"?)'),
        ("zzzzzz=5", 'No such configuration property: "zzzzzz"'),
        ("request.timeout.ms=soon", "request.timeout.ms=soon: expected a whole number from 1 to 2147483647"),
        ("linger.ms", "-X linger.ms: expected KEY=VALUE"),
    ],
)
def test_what_cannot_be_used_is_wrong_usage(given: str, line: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        settings_of(Target("hub", (given,)))
    assert caught.value.message == line
