"""The options that say which broker, and how to reach it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from leafcuttr.cli.root import cli

Run = Callable[..., Any]
NO_TEXT = os.fsdecode(b"caf\xe9")  # Latin-1, as an old script would have it


def test_settings_of_the_client_from_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# how to get in\nclient.id = probe\nsecurity.protocol=SASL_PLAINTEXT\n\n")
    # The file says SASL without a password; what stands on the line wins.
    refused = run("topics", "list", "-F", str(file))
    assert refused.status != 0
    assert run("topics", "list", "-F", str(file), "-X", "security.protocol=plaintext").status == 0
    file.write_text("sasl.password\n")
    wrong = run("topics", "list", "--client-config", str(file))
    assert wrong.status == 2
    assert "a line is no KEY=VALUE" in wrong.err
    assert run("topics", "list", "-F", str(tmp_path / "nothing")).status == 2


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "create", NO_TEXT),
        ("topics", "delete", NO_TEXT),
        ("topics", "list", "-X", f"{NO_TEXT}=1"),
        ("topics", "list", "-b", NO_TEXT),
        ("produce", NO_TEXT),
        ("produce", "words", "-H", f"{NO_TEXT}=1"),
        ("produce", "words", "-t", NO_TEXT),
        ("consume", "words", "-g", NO_TEXT),
        ("groups", "describe", NO_TEXT),
        ("groups", "delete", NO_TEXT),
        ("groups", "reset-offsets", NO_TEXT, "--topic", "words", "--to-earliest"),
        ("configs", "alter", "topic", "words", "--set", f"{NO_TEXT}=1"),
        ("perf", "produce", "--topic", NO_TEXT, "--num-records", "1", "--record-size", "1"),
    ],
    ids=" ".join,
)
def test_a_name_that_is_not_utf8_is_wrong_usage(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "not UTF-8" in done.stderr


def test_keys_and_values_of_headers_may_be_any_bytes(run: Run) -> None:
    run("topics", "create", "latin", "-p", "1")
    assert run("produce", "latin", "--key", NO_TEXT, "-H", f"a={NO_TEXT}", stdin=b"x\n").status == 0
    read = run("consume", "latin", "--json").json
    assert read["key_base64"] == "Y2Fm6Q=="
    assert read["headers"] == [{"name": "a", "value_base64": "Y2Fm6Q=="}]
