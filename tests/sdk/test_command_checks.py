"""The check of commands finds what is wrong with one, and nothing with one that is right."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from leafcuttr_sdk import (
    CliCommand,
    PluginError,
    admin_server_option,
    bootstrap_server_options,
    command_context,
    json_option,
)
from leafcuttr_sdk.testing import ContractError, RunningBroker, check_command, run_command, running_broker
from leafcuttr_sdk.testing.command_checks import command_report


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


def of(function: Callable[..., Any], *decorators: Callable[..., Any]) -> CliCommand:
    for decorate in reversed(decorators):
        function = decorate(function)
    made = click.command("count", help="Count.")(function)
    return CliCommand("count", "count trees", lambda: made)


def topics(trees: str = "") -> None:
    from confluent_kafka.admin import AdminClient

    context = command_context()
    found = context.client(AdminClient).list_topics(timeout=context.timeout_s).topics
    if context.as_json:
        context.print_json(sorted(found))
    else:
        context.print_table(("TOPIC",), [(name,) for name in found])


GOOD = of(topics, bootstrap_server_options, json_option)


def problems(command: CliCommand, broker: RunningBroker | None = None, **more: Any) -> dict[str, str]:
    """By name of the check, all of it in one text."""
    try:
        address = None if broker is None else broker.bootstrap_servers
        check_command(command, bootstrap_server=address, **more)
    except ContractError as error:
        assert error.report.kind == "command"
        return {check.name: " / ".join(check.problems) for check in error.report.checks if check.problems}
    return {}


def done(command: CliCommand, **more: Any) -> list[str]:
    return [check.name for check in command_report(command, **more).checks]


@pytest.mark.parametrize(
    ("made", "problems"),
    [
        (click.Command("count", help="Count."), []),
        (click.Command("count"), ["it has no help: write a docstring; --help shows it"]),
        (None, ["load() returned None, not a click.Command"]),
        (5, ["load() returned an int, not a click.Command"]),
        (click.Command, ["load() returned a type, not a click.Command"]),
    ],
    ids=repr,
)
def test_what_load_returns(made: object, problems: list[str]) -> None:
    assert command_report(CliCommand("count", "counts", lambda: made)).problems == problems  # type: ignore[arg-type,return-value]


def test_what_load_raises() -> None:
    assert problems(CliCommand("count", "counts", lambda: {}["{}"])) == {
        "loads": "load() raised KeyError: '{}'"
    }


@pytest.mark.parametrize("summary", ["", "Counts", "counts."])
def test_the_summary(summary: str) -> None:
    assert problems(GOOD._replace(summary=summary))["help"].startswith(f"its summary is {summary!r}: a few")


def test_one_that_is_right_is_called_in_every_way(broker: RunningBroker) -> None:
    assert problems(GOOD, broker) == {}
    everything = ["loads", "help", "usage", "options", "json", "unreachable"]
    with_broker = [name for name in everything if name != "json"]
    assert done(GOOD) == with_broker  # nobody said which broker
    assert done(of(lambda: None)) == ["loads", "help", "usage", "options"]


def test_words_that_have_to_be_given_are_those_of_the_calls(broker: RunningBroker) -> None:
    seen: list[str] = []

    def count(trees: str) -> None:
        seen.append(trees)
        topics()

    command = of(count, bootstrap_server_options, json_option, click.argument("trees"))
    assert problems(command, broker) == {}
    assert seen == []
    assert problems(command, broker, calls=[("oak",)]) == {}
    assert seen == ["oak", "oak"]


def test_commands_in_a_group_are_checked(broker: RunningBroker) -> None:
    @click.group(help="Trees.")
    def group() -> None: ...

    @group.group(help="More.")
    def more() -> None: ...

    @more.command()
    @bootstrap_server_options
    @json_option
    @click.argument("trees")
    def count(trees: str) -> None:
        command_context().print_line("no JSON")

    found = problems(CliCommand("trees", "trees", lambda: group), broker, calls=[("more", "count", "oak")])
    assert found == {
        "help": "more count has no help: write a docstring",
        "unreachable": "`trees more count oak` ended with status 0 where no broker answers",
        "json": "`trees more count --json oak` printed 'no JSON\\n', which is no JSON",
    }


def test_options_of_a_group_count_for_the_commands_in_it(broker: RunningBroker) -> None:
    @click.group(help="Trees.")
    @bootstrap_server_options
    @json_option
    def group() -> None: ...

    group.command("count", help="Count.")(topics)
    group.command("guess", help="Guess.")(lambda: click.echo("many"))
    assert problems(CliCommand("trees", "trees", lambda: group), broker) == {
        "unreachable": "`trees guess` ended with status 0 where no broker answers",
        "json": "`trees --json guess` printed 'many\\n', which is no JSON",
    }


def test_options_of_ones_own() -> None:
    broker_option = click.option("--bootstrap-server", "-b", default="localhost:9092")
    json_flag = click.option("--json", "as_json", is_flag=True)
    found = problems(of(lambda bootstrap_server, as_json: None, broker_option, json_flag))
    assert (
        "it declares --bootstrap-server by itself: decorate it with bootstrap_server_options"
        in found["options"]
    )
    assert "it declares --json by itself: decorate it with json_option" in found["options"]
    assert problems(of(lambda json: None, click.option("--json", metavar="FILE"))) == {}


def test_an_option_that_is_not_there() -> None:
    def count(words: tuple[str, ...]) -> None:
        """It takes whatever is given for words."""

    taken = click.command("count", context_settings={"ignore_unknown_options": True}, help="Count.")(
        click.argument("words", nargs=-1)(count)
    )
    assert problems(CliCommand("count", "count", lambda: taken)) == {}

    class Loose(click.Command):
        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            return super().parse_args(ctx, [word for word in args if not word.startswith("--no")])

    loose = Loose("count", help="Count.", callback=lambda: None)
    assert problems(CliCommand("count", "count", lambda: loose)) == {
        "usage": "`count --no-option-of-this-name` ended with status 0 (nothing was said), not 2"
    }


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (lambda: None, "ended with status 0 where no broker answers"),
        (lambda: Path("/nowhere/at/all").read_text(), "left FileNotFoundError: "),
        (lambda: {}["{x}"], "left KeyError: '{x}'"),
        (lambda: (click.echo("a\nb", err=True), command_context().fail("c")), "wrote 3 lines"),
        (lambda: sys.exit(1), "wrote 0 lines"),
        (lambda: command_context().fail("no broker"), None),
        (lambda: (_ for _ in ()).throw(PluginError("no broker")), None),
    ],
)
def test_a_broker_that_does_not_answer(end: Callable[[], Any], says: str | None) -> None:
    found = problems(of(end, bootstrap_server_options))
    assert found.keys() == ({"unreachable"} if says else set())
    assert says is None or f"`count` {says}" in found["unreachable"]


@pytest.mark.parametrize(
    ("out", "status", "says"),
    [
        ("[1]\n", 0, None),
        ("[\n1\n]\n", 0, None),
        ("1\n2\n", 0, None),
        ("1\n2\n", 1, None),
        ("", 1, None),
        ("", 0, "printed nothing: print_json([])"),
        ("1 tree\n", 0, "printed '1 tree\\n', which is no JSON"),
        ("{}\n1 tree {}\n", 0, "which is no JSON"),
        ("[1]\n", 3, "ended with status 3"),
    ],
)
def test_json(out: str, status: int, says: str | None) -> None:
    """Of a command that uses no broker: it needs none."""

    def count() -> None:
        assert command_context().as_json or "--json" not in sys.argv
        click.echo(out, nl=False)
        sys.exit(status)

    found = problems(of(count, json_option))
    assert found.keys() == ({"json"} if says else set())
    assert says is None or says in found["json"]


def test_json_and_a_failure_that_is_left() -> None:
    assert "ended with status 1 (leafcuttr: plugin test: command count failed: KeyError" in problems(
        of(lambda: {}["x"], json_option)
    )["json"]  # fmt: skip


def test_no_broker_of_the_persons_own_is_used(broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAFCUTTR_BOOTSTRAP_SERVER", "mine:1")
    monkeypatch.setenv("LEAFCUTTR_ADMIN_SERVER", "mine:2")
    seen: list[tuple[str, str]] = []

    def count() -> None:
        context = command_context()
        seen.append((context.bootstrap_server, context.admin_address))
        topics()

    command = of(count, bootstrap_server_options, admin_server_option, json_option)
    assert problems(command, broker, admin_server="theirs:3") == {}
    (first, _), second = seen
    assert first.startswith("127.0.0.1:") and first != broker.bootstrap_servers
    assert second == (broker.bootstrap_servers, "theirs:3")
    assert (os.environ["LEAFCUTTR_BOOTSTRAP_SERVER"], os.environ["LEAFCUTTR_ADMIN_SERVER"]) == (
        "mine:1",
        "mine:2",
    )


def test_a_command_that_uses_the_admin_port_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAFCUTTR_ADMIN_SERVER", "mine:2")
    seen: list[str] = []

    def count() -> None:
        context = command_context()
        seen.append(context.admin_address)
        if context.as_json:
            context.print_json([])
        else:
            context.fail("no answer")

    command = of(count, admin_server_option, json_option)
    assert problems(command) == {}
    assert [address.rpartition(":")[0] for address in seen] == ["127.0.0.1"]
    assert problems(command, admin_server="theirs:3") == {}
    assert seen[2:] == ["theirs:3"]


def test_where_no_broker_starts_none_is_used() -> None:
    @contextmanager
    def none() -> Iterator[None]:
        yield None

    called: list[bool] = []
    command = of(lambda: called.append(command_context().as_json), bootstrap_server_options, json_option)
    command_report(command, brokers=none)
    assert called == [False]


def test_without_options_of_a_broker_no_variable_of_the_person_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LEAFCUTTR_BOOTSTRAP_SERVER", "mine:1")
    seen: list[str | None] = []

    def count() -> None:
        seen.append(os.environ.get("LEAFCUTTR_BOOTSTRAP_SERVER"))
        command_context().print_json([])

    assert problems(of(count, json_option)) == {}
    assert seen == [None]


# `run_command`


def test_a_command_in_this_process() -> None:
    def count(trees: int) -> None:
        click.echo(f"{trees} of {sys.stdin.read().strip()}")
        sys.stdout.buffer.write(b"\xff")
        click.echo("so many", err=True)
        sys.exit(4)

    plugin = ModuleType("orchard")
    before = (sys.stdin, sys.stdout, sys.stderr)
    ran = run_command(of(count, click.argument("trees", type=int)), "7", stdin="Größe\n", plugin=plugin)
    assert ran == (4, "7 of Größe\n\ufffd", "so many\n")
    assert (sys.stdin, sys.stdout, sys.stderr) == before


def test_the_line_of_a_failure_names_the_plugin() -> None:
    from leafcuttr_sdk import Plugin

    plugin = ModuleType("orchard_plugin")
    plugin.PLUGIN = Plugin("orchard", 1, "for tests")  # type: ignore[attr-defined]
    assert run_command(of(lambda: {}["x"]), plugin=plugin).err.startswith(
        "leafcuttr: plugin orchard: command count failed: KeyError: 'x' ("
    )
