"""`leafcuttr filters`: types, and filters on a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import leafcuttr_filters as plugin
from leafcuttr_filters.definitions.table import TYPES
from leafcuttr_sdk.testing import CommandResult, check_command, run_command


def run(*words: str, stdin: str = "") -> CommandResult:
    (command,) = plugin.leafcuttr_register_cli_commands()
    return run_command(command, *words, plugin=plugin, stdin=stdin)


def rows(*words: str, stdin: str) -> list[dict[str, object]]:
    done = run("test", *words, "--sample", "-", "--json", stdin=stdin)
    assert done.err == ""
    found = json.loads(done.out)
    assert isinstance(found, list)
    return found


def test_it_keeps_the_contract_of_commands() -> None:
    (command,) = plugin.leafcuttr_register_cli_commands()
    check_command(command, plugin=plugin)


def test_types_are_listed_and_described() -> None:
    assert [one["name"] for one in json.loads(run("list", "--json").out)] == [one.name for one in TYPES]
    assert len(run("list").out.splitlines()) == len(TYPES) + 1
    (described,) = [json.loads(run("describe", "mask", "--json").out)]
    assert described["on_error"] == "fail" and described["connect"] == "MaskField"
    assert {"name": "keep", "default": "0"}.items() <= described["options"][4].items()
    text = run("describe", "sample").out
    assert "sample: keeps a share of the records" in text and "share" in text and "needed" in text
    unknown = run("describe", "maks")
    assert unknown.status == 2 and "there is no type of filter 'maks'; there are allow, " in unknown.err


def test_what_filters_make_of_a_file() -> None:
    found = rows(
        "--filter", "allow field=a", "--filter", "cast spec=a:int8",
        "--filter", "route regex=test replacement=x when='value.a == 2'",
        stdin='{"a":1}\n{"a":"2"}\n{"b":3}\n\n{"a":"x"}\r\n',
    )  # fmt: skip
    assert [(one["record"], one["verdict"], one["value"]) for one in found] == [
        (1, "kept", '{"a":1}'), (2, "routed", '{"a":2}'), (3, "dropped", None), (4, "dead letter", '{"a":"x"}'),
    ]  # fmt: skip
    assert [one["detail"] for one in found] == [None, "x", None, "cast: the field a cannot be cast to int8"]


def test_keys_and_whole_records() -> None:
    found = rows("--filter", "allow key=a", "--key-separator", "|", stdin="a|x\nb|y\nz\n")
    assert [(one["key"], one["verdict"]) for one in found] == [
        ("a", "kept"),
        (None, "dropped"),
        (None, "dropped"),
    ]
    lines = [
        {
            "key": "k",
            "value": {"a": 1},
            "headers": [{"name": "h", "value": "v"}],
            "timestamp": 5,
            "offset": 3,
        },
        {"key_base64": "/w==", "value": None, "headers": {"h": "w"}},
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    found = rows("--filter", "allow header=h", "--records", stdin=text)
    assert [(one["key"], one["value"], one["headers"]) for one in found] == [
        ("k", '{"a":1}', {"h": "v"}), ("\\xff", None, {"h": "w"}),
    ]  # fmt: skip
    assert rows("--filter", "age max=1h", "--records", stdin=text)[0]["verdict"] == "dropped"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nope", "line 1: Expecting value"),
        ("[1]", "line 1: it is no JSON object"),
        ('{"headers":[1]}', "line 1: a header is an object with name and value"),
        ('{"value_base64":"*"}', "line 1: Only base64 data is allowed"),
        ("[" * 100_000, "line 1: "),
    ],
    ids=lambda text: text[:12],
)
def test_a_line_that_is_no_record(line: str, why: str) -> None:
    done = run("test", "--filter", "tombstones", "--records", "--sample", "-", stdin=line)
    assert done.status == 2 and why in done.err


def test_filters_of_a_file_and_of_options(tmp_path: Path) -> None:
    config, sample = tmp_path / "server.properties", tmp_path / "sample"
    config.write_text(
        "lc.record.filter.a=deny key.regex=^x\nlc.record.filter.b=deny value.regex=\\\\d\nnode.id=1\n"
    )
    sample.write_text("x|1\ny|2\ny|z\n")
    done = run("test", "a", "c", "-c", str(config), "-o", "lc.record.filter.c=deny key=y when='value == \"z\"'",
               "--sample", str(sample), "--key-separator", "|")  # fmt: skip
    assert [line.split()[1] for line in done.out.splitlines()[1:]] == ["dropped", "kept", "dropped"]
    done = run("test", "b", "-c", str(config), "--sample", str(sample))
    assert [line.split()[1] for line in done.out.splitlines()[1:]] == ["dropped", "dropped", "kept"]


@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        (("--filter", "maks a=b"), 2, "lc.record.filter.filter-1=maks a=b (-o): there is no type of filter 'maks'"),
        (("nothing",), 1, "there is no record filter nothing"),
        ((), 2, "name filters, or give some by --filter"),
        (("a", "-o", "b"), 2, "-o b: allowed is key=value"),
    ],
)  # fmt: skip
def test_what_is_wrong(words: tuple[str, ...], status: int, line: str) -> None:
    done = run("test", *words, "--sample", "-", stdin="a\n")
    assert done.status == status and line in done.err


def test_a_filter_that_fails_ends_it_with_status_1() -> None:
    done = run("test", "--filter", "mask fields=a", "--sample", "-", stdin="no json\n")
    assert done.status == 1 and "filter-1: mask: it is no JSON" in done.out
