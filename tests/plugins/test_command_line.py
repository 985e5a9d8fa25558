"""Plugins on the command line, each command in a process of its own: what they add to it, and `leafcuttr plugins`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.broker_process import clean_environ
from support.commands import Ran
from support.forked_start import run_leafcuttr
from support.plugin_folders import SOUND, install

LACKS = (
    "it needs not_there_at_all, which is not installed; mend it with: pip install 'leafcuttr-turned[fast]'"
)

TURNED = """
from leafcuttr_sdk import CliCommand, FormatError, Plugin, RecordFilterSpec, ServiceSpec, Setting, Type
from leafcuttr_sdk.errors import PluginError

PLUGIN = Plugin(
    name="turned", api_version=1, summary="Turns letters.", enabled_by="lc.plugin.turned.enable", extra="fast",
    modules=("not_there_at_all",),
)


def leafcuttr_register_settings():
    yield Setting("lc.plugin.turned.enable", Type.BOOLEAN, False, "Whether letters are turned.")
    yield Setting("lc.plugin.turned.secret", Type.PASSWORD, None, "What nobody is told.")


def leafcuttr_register_services():
    return [ServiceSpec("turned", make=turn, needs=("other",))]


def leafcuttr_register_cli_commands():
    return [
        CliCommand("turn", "turn letters round", turn),
        CliCommand("topics", "another one", turn),
        CliCommand("Turn it", "no name", turn),
        CliCommand("turn-badly", "fail", lambda: 1 / 0),
        CliCommand("turn-wrong", "be nothing", lambda: "no command"),
    ]


def leafcuttr_register_record_formats():
    return [Rot()]


def turn():
    import click

    @click.command()
    @click.argument("word")
    def command(word):
        "Turn a word round."
        if word == "no":
            raise PluginError("that word cannot be turned")
        click.echo(word[::-1])

    return command


class Rot:
    name, summary, options, json_text = "turned", "letters turned round", {}, False

    def open(self, options):
        return self

    def encode(self, text, place):
        if text == "break":
            raise ZeroDivisionError("of this format")
        return text[::-1].encode()

    def decode(self, data, place):
        return data.decode()[::-1]

    def close(self):
        pass
"""


def leafcuttr(site: Path, *words: str, environ: Mapping[str, str] | None = None, text: str = "") -> Ran:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    done = run_leafcuttr(
        words, stdin=text.encode(), cwd=site, environ=clean_environ({**own, **(environ or {})})
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    install(tmp_path, "turned", TURNED)
    return tmp_path


def test_help_names_the_commands_of_plugins_apart(site: Path) -> None:
    ran = leafcuttr(site, "--help")
    assert (ran.status, ran.err) == (0, "")
    ours, theirs = ran.out.split("Commands of plugins:")
    assert "topics" in ours and "turn" not in ours.split()
    assert [line.split()[0] for line in theirs.splitlines() if line] == [
        "filters",
        "flows",
        "http",
        "mirror",
        "mqtt",
        "relay",
        "schemas",
        "spark",
        "turn",
        "turn-badly",
        "turn-wrong",
    ]
    assert "turn letters round" in theirs


@pytest.mark.long
def test_a_command_runs_and_has_help(site: Path) -> None:
    assert leafcuttr(site, "turn", "leaf") == Ran(0, "fael\n", "")
    assert "Turn a word round." in leafcuttr(site, "turn", "--help").out
    assert leafcuttr(site, "turn", "no") == Ran(1, "", "leafcuttr: that word cannot be turned\n")


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("turn-badly", LACKS),
        ("turn-wrong", "its load() returned a str; it has to return a click.Command"),
    ],
)  # fmt: skip
def test_a_command_that_cannot_be_had_is_one_line(site: Path, word: str, says: str) -> None:
    ran = leafcuttr(site, word)
    assert ran == Ran(1, "", f"leafcuttr: the command {word} of plugin turned cannot be loaded: {says}\n")


def test_a_name_of_ours_stays_ours(site: Path) -> None:
    assert "List, create, describe" in leafcuttr(site, "topics", "--help").out


def test_an_unknown_command_may_be_that_of_a_broken_plugin(site: Path) -> None:
    install(site, "acme", "import nothing_of_this_name")
    ran = leafcuttr(site, "acme")
    assert ran.status == 2
    assert "plugin acme (leafcuttr-acme 1.2): cannot be imported: ModuleNotFoundError" in ran.err
    assert "No such command 'acme'" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.long
def test_disabled_and_single_files_by_the_environment(site: Path, tmp_path: Path) -> None:
    ran = leafcuttr(site, "turn", "leaf", environ={"KAFKA_LC_PLUGINS_DISABLED": "turned,other"})
    assert ran.status == 2 and "No such command 'turn'" in ran.err
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "turned.py").write_text(TURNED)
    ran = leafcuttr(folder, "turn", "leaf", environ={"KAFKA_LC_PLUGINS_PATH": str(folder)})
    assert (ran.status, ran.out) == (0, "fael\n")
    ran = leafcuttr(folder, "turn", "leaf", environ={"KAFKA_LC_PLUGINS_PATH": "nowhere"})
    assert ran.status == 2
    assert ran.err.startswith(
        "leafcuttr: lc.plugins.path=nowhere (KAFKA_LC_PLUGINS_PATH): No such file or directory\n"
    )


@pytest.mark.long
def test_shell_completion_offers_them(site: Path) -> None:
    words = {"_LEAFCUTTR_COMPLETE": "bash_complete", "COMP_WORDS": "leafcuttr tur", "COMP_CWORD": "1"}
    assert leafcuttr(site, environ=words).out.split() == [
        "plain,turn",
        "plain,turn-badly",
        "plain,turn-wrong",
    ]
    assert leafcuttr(site, environ={**words, "KAFKA_LC_PLUGINS_PATH": "nowhere"}).err == ""
    words |= {"COMP_WORDS": "leafcuttr produce --format tu", "COMP_CWORD": "3"}
    assert leafcuttr(site, environ=words).out.split() == ["plain,turned"]


@pytest.mark.long
def test_formats(site: Path) -> None:
    assert "turned: letters turned round." in " ".join(leafcuttr(site, "dump", "--help").out.split())
    ran = leafcuttr(site, "consume", "t", "--format", "turnd", "-b", "127.0.0.1:1")
    assert (ran.status, "did you mean turned?" in ran.err) == (2, True)
    assert "no format 'turned'" in leafcuttr(site.parent, "consume", "t", "--format", "turned").err


def test_list(site: Path) -> None:
    install(site, "acme", SOUND.format(name="acme"))
    install(site, "broken", "1 / 0")
    ran = leafcuttr(site, "plugins", "list", "-o", "lc.plugins.disabled=acme")
    assert (ran.status, ran.err) == (0, "")
    lines = [line for line in ran.out.splitlines() if "leafcuttr 0" not in line]
    assert [line.split()[:4] for line in lines[:4]] == [
        ["NAME", "STATE", "FROM", "SUMMARY"],
        ["acme", "disabled", "leafcuttr-acme", "1.2"],
        ["broken", "failed", "leafcuttr-broken", "1.2"],
        ["turned", "unavailable", "leafcuttr-turned", "1.2"],
    ]
    assert lines[4:] == [
        f"broken: cannot be imported: ZeroDivisionError: division by zero ({site / 'broken_plugin.py'}, line 1)",
        f"turned: {LACKS}",
        "turned: its command topics is left out: LeafCuttr has one of that name",
        "turned: 'Turn it' cannot name a command: lower-case letters, digits and -",
    ]


def test_list_json_and_settings_of_a_file(site: Path) -> None:
    install(site, "turned", TURNED.replace("not_there_at_all", "json"))
    file = site / "server.properties"
    file.write_text("lc.plugin.turned.enable=true\n")

    def one(*options: str) -> dict[str, object]:
        rows = leafcuttr(site, "plugins", "list", "--json", *options).json
        (row,) = [row for row in rows if row["name"] == "turned"]
        assert isinstance(row, dict)
        return row

    off = one()
    assert (off["state"], off["why"]) == ("off", "lc.plugin.turned.enable=true switches it on")
    assert off["enabled_by"] == "lc.plugin.turned.enable"
    assert (off["distribution"], off["version"], off["bundled"]) == ("leafcuttr-turned", "1.2", False)
    on = one("-c", str(file))
    assert (on["state"], on["why"], on["missing"]) == ("enabled", None, [])


@pytest.mark.long
def test_describe(site: Path) -> None:
    ran = leafcuttr(site, "plugins", "describe", "turned")
    assert (ran.status, ran.err) == (0, "")
    assert "mend it with: pip install 'leafcuttr-turned[fast]'" in ran.out
    assert "switched on by: lc.plugin.turned.enable=true" in ran.out
    described = leafcuttr(site, "plugins", "describe", "turned", "--json").json
    assert [row["name"] for row in described["settings"]] == [
        "lc.plugin.turned.enable",
        "lc.plugin.turned.secret",
    ]
    assert described["settings"][1]["default"] is None
    assert described["services"] == [{"name": "turned", "needs": ["other"]}]
    assert described["record_formats"] == [
        {"name": "turned", "summary": "letters turned round", "makes_records": False}
    ]
    assert described["hooks"] == sorted(described["hooks"]) and len(described["hooks"]) == 4


def test_describe_what_has_failed_or_is_not_there(site: Path) -> None:
    install(
        site, "broken", SOUND.format(name="broken") + "def leafcuttr_register_services():\n    return 5\n"
    )
    ran = leafcuttr(site, "plugins", "describe", "broken")
    assert ran.status == 1
    assert "failed: leafcuttr_register_services: it returned an int" in ran.out
    ran = leafcuttr(site, "plugins", "describe", "turnd")
    assert ran == Ran(1, "", "leafcuttr: no plugin turnd is installed: did you mean turned?\n")
