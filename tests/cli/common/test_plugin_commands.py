"""Commands of plugins act as ours: options, completion, what is printed, how a command fails. Against both brokers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from leafcuttr.cli.common.installed import installed
from leafcuttr.cli.root import cli
from leafcuttr_sdk import (
    CliCommand,
    PluginError,
    admin_server_option,
    bootstrap_server_options,
    command_context,
    complete_groups,
    complete_topics,
    json_option,
)
from leafcuttr_sdk.errors import UnknownTopicOrPartition
from leafcuttr_sdk.testing import run_command
from support.broker_process import clean_environ, running_broker
from support.tls_peer import Certificates
from support.waiting import free_port

Run = Callable[..., Any]
NO_TEXT = os.fsdecode(b"caf\xe9")

ORCHARD = """
from leafcuttr_sdk import (
    CliCommand, Plugin, admin_server_option, bootstrap_server_options, command_context, complete_groups,
    complete_topics, json_option,
)

PLUGIN = Plugin("orchard", 1, "for tests")


def leafcuttr_register_cli_commands():
    yield CliCommand("orchard", "count trees", load)
    yield CliCommand("orchard-broken", "not load", lambda: {}["key"])


def load():
    import click
    from confluent_kafka import Consumer, TopicPartition

    @click.group()
    def command():
        "Count trees."

    @command.command()
    @bootstrap_server_options
    @json_option
    @click.argument("topic", shell_complete=complete_topics)
    @click.option("--group", default="orchard", shell_complete=complete_groups)
    def count(topic, group):
        "Print how many records a topic has."
        context = command_context()
        consumer = context.client(Consumer, {"group.id": group})
        try:
            partitions = consumer.list_topics(topic, timeout=context.timeout_s).topics[topic].partitions
            rows = []
            with context.progress("partitions", len(partitions)) as advance:
                for number in sorted(partitions):
                    part = TopicPartition(topic, number)
                    rows.append((number, *consumer.get_watermark_offsets(part, timeout=context.timeout_s)))
                    advance(1)
        finally:
            consumer.close()
        if context.as_json:
            context.print_json([dict(zip(("partition", "first", "end"), row)) for row in rows])
        else:
            context.print_table(("PARTITION", "FIRST", "END"), rows)

    @command.command()
    @bootstrap_server_options
    @admin_server_option
    def admin():
        "Print where the admin port is."
        command_context().print_line(command_context().admin_address)

    @command.command()
    @bootstrap_server_options
    def settings():
        "Print the settings of clients."
        command_context().print_json(command_context().client_settings({"client.id": "usual", "acks": "1"}))

    @command.command()
    @bootstrap_server_options
    @click.argument("properties", nargs=-1)
    def peer(properties):
        "Print the topics of a cluster."
        import trio

        context = command_context()

        async def topics():
            given = dict(each.split("=", 1) for each in properties)
            async with context.peer({"bootstrap.servers": context.bootstrap_server, **given}) as cluster:
                return sorted(await cluster.topics())

        context.print_json(trio.run(topics))

    @command.command()
    def lost():
        "Fail as click has it."
        raise click.ClickException("no trees")

    return command
"""


@pytest.fixture
def orchard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the plugin above, which the command line finds."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "orchard.py").write_text(ORCHARD)
    monkeypatch.setenv("KAFKA_LC_PLUGINS_PATH", str(folder))
    installed.cache_clear()
    yield folder
    installed.cache_clear()


def found(*words: str) -> click.Command:
    context = click.Context(cli, info_name="leafcuttr")
    command: click.Command | None = cli
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(context, word)
    assert command is not None
    return command


def options(*words: str) -> dict[str, tuple[Any, ...]]:
    """What a person and a shell see of each option, by its longest name."""
    command = found(*words)
    context = click.Context(command, info_name=words[-1])
    return {
        max(one.opts, key=len): (
            one.opts,
            one.get_help_record(context),
            one.envvar,
            one.multiple,
            one.type.to_info_dict(),
        )
        for one in command.params
        if isinstance(one, click.Option)
    }


# Options


def test_the_options_are_those_of_ours(orchard: Path) -> None:
    ours, theirs = options("topics", "list"), options("orchard", "count")
    names = ["--bootstrap-server", "-X", "--command-config", "--timeout", "--json"]
    assert [name for name in theirs if name in ours] == [name for name in ours if name in names] == names
    for name in names:
        assert theirs[name] == ours[name]
    assert theirs["--bootstrap-server"][2] == "LEAFCUTTR_BOOTSTRAP_SERVER"
    assert options("orchard", "admin")["--admin-server"][2] == "LEAFCUTTR_ADMIN_SERVER"


def lines(ran: Any) -> tuple[int, list[str]]:
    """Status and errors, without the lines of click that name the command."""
    return ran.status, [
        line for line in ran.err.splitlines() if line and not line.startswith(("Usage: ", "Try "))
    ]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("-X", "foo"), 2),
        (("-X", "foo=1"), 2),
        (("-X", f"{NO_TEXT}=1"), 2),
        (("-b", NO_TEXT), 2),
        (("-F", "there-is-none"), 2),
        (("-F", "half.properties"), 2),
        (("-F", "foo.properties"), 2),
        (("--timeout", "long"), 2),
        (("--timeout", "0"), 2),
        (("--no-such",), 2),
        (("-b", "127.0.0.1:1", "--timeout", "1"), 1),
    ],
)
def test_what_is_refused_is_said_in_the_words_of_ours(
    orchard: Path, run: Run, words: tuple[str, ...], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(orchard)
    (orchard / "half.properties").write_text("sasl.password\n")
    (orchard / "foo.properties").write_text("foo=1\n")
    ours, theirs = run("topics", "list", *words), run("orchard", "count", "t", *words)
    assert lines(theirs) == lines(ours)
    assert theirs.status == status
    assert theirs.err


def test_settings_of_the_line_win_over_those_of_the_file_and_of_the_command(orchard: Path, run: Run) -> None:
    file = orchard / "client.properties"
    file.write_text("# how\nclient.id = of the file\nlinger.ms=7\n")
    words = ("-F", file, "-X", "linger.ms=9", "-b", "a:1,b:2")
    assert run("orchard", "settings", *words).json == {
        "bootstrap.servers": "a:1,b:2",
        "log_level": 2,
        "client.id": "of the file",
        "acks": "1",
        "linger.ms": "9",
    }


def test_a_client_has_reached_a_broker_in_time() -> None:
    """Five seconds at most, as ours; `--timeout` may be less."""
    asked: list[float] = []

    class Client:
        def __init__(self, settings: dict[str, Any]) -> None:
            self.settings = {name: value for name, value in settings.items() if name != "error_cb"}

        def list_topics(self, timeout: float) -> Any:
            asked.append(timeout)
            return self

        topics = ()

    def do() -> None:
        command_context().print_json(command_context().client(Client, {"acks": "1"}).settings)

    ran = run_command(of(do, bootstrap_server_options), "--timeout", "2")
    assert ran.out == '{"bootstrap.servers": "localhost:9092", "log_level": 2, "acks": "1"}\n'
    run_command(of(do, bootstrap_server_options), "--timeout", "60")
    assert asked == [2.0, 5.0]


# Against a broker


def test_a_command_works_with_any_kafka(orchard: Path, run: Run, topic: str) -> None:
    """The broker is found by the variable, as by ours."""
    run("topics", "create", topic, "-p", "2")
    run("produce", topic, "-p", "1", stdin=b"a\nb\nc\n")
    ran = run("orchard", "count", topic)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "PARTITION  FIRST  END\n0          0      0\n1          0      3\n"
    assert run("orchard", "count", topic, "--json").json == [
        {"partition": 0, "first": 0, "end": 0},
        {"partition": 1, "first": 0, "end": 3},
    ]


def complete(orchard: Path, address: str, *words: str) -> list[str]:
    program = [sys.executable, "-m", "leafcuttr"]
    environ = {
        "KAFKA_LC_PLUGINS_PATH": str(orchard),
        "LEAFCUTTR_BOOTSTRAP_SERVER": address,
        "LEAFCUTTR_COMPLETION_TIMEOUT": "60",
        "_LEAFCUTTR_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("leafcuttr", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        program, capture_output=True, text=True, timeout=120, env=clean_environ(environ), check=False
    )
    assert done.stderr == ""
    return [line.removeprefix("plain,") for line in done.stdout.split()]


def test_a_command_has_a_cluster_as_a_peer(orchard: Path, run: Run, topic: str) -> None:
    run("topics", "create", topic, "-p", "1")
    assert topic in run("orchard", "peer").json
    refused = run("orchard", "peer", "security.protocol=SASL_SSL", "sasl.mechanism=GSSAPI")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith("leafcuttr: ")
    assert "sasl.mechanism" in refused.err
    assert refused.err.count("\n") == 1


@pytest.mark.long
def test_topics_and_groups_are_completed(orchard: Path, run: Run, address: str, topic: str) -> None:
    run("topics", "create", topic, "-p", "1")
    nowhere = f"127.0.0.1:{free_port()}"
    group = f"g-{topic}"
    run("groups", "reset-offsets", group, "-t", topic, "--to-latest", "--execute")
    assert complete(orchard, address, "orchard", "count", topic[:14]) == [topic]
    assert complete(orchard, address, "orchard", "count", "t", "--group", group[:14]) == [group]
    # The one on the line counts, not the variable; and who does not answer offers nothing.
    assert complete(orchard, nowhere, "orchard", "count", "-b", address, topic[:14]) == [topic]
    assert complete(orchard, nowhere, "orchard", "count", topic[:14]) == []
    assert "--client-config" in complete(orchard, nowhere, "orchard", "count", "--cl")


# The admin port


def test_the_admin_port_is_what_the_settings_of_the_broker_say(
    tmp_path: Path, orchard: Path, run: Run
) -> None:
    port = free_port()
    with running_broker(tmp_path / "broker", {"lc.metrics.port": str(port)}) as broker:
        host = broker.address.rpartition(":")[0]
        assert run("orchard", "admin", at=broker.address).out == f"{host}:{port}\n"
        # What is given is not checked.
        assert run("orchard", "admin", "--admin-server", "h:1", at=broker.address).out == "h:1\n"


@pytest.mark.parametrize(
    ("settings", "out", "says"),
    [
        (
            {"lc.metrics.port": "0"},
            "",
            "which port it took for lc.metrics.port=0: name the admin port by --admin",
        ),
        ({"lc.metrics.enable": "false"}, "", "has no admin port: its lc.metrics.enable is false"),
        ({"lc.metrics.host": "127.0.0.2"}, "127.0.0.2:", ""),
    ],
)
def test_what_the_settings_may_say(
    tmp_path: Path, orchard: Path, run: Run, settings: dict[str, str], out: str, says: str
) -> None:
    with running_broker(tmp_path / "broker", {"lc.metrics.port": str(free_port()), **settings}) as broker:
        ran = run("orchard", "admin", at=broker.address)
    assert ran.out.startswith(out) and bool(ran.out) is bool(out)
    assert (says in ran.err, ran.status) == (True, 1 if says else 0)


def test_an_admin_port_with_tls(tmp_path: Path, orchard: Path, run: Run) -> None:
    port, key = free_port(), Certificates(tmp_path).issue("127.0.0.1").file
    settings = {"lc.metrics.port": str(port), "lc.metrics.ssl.keystore.location": key}
    with running_broker(tmp_path / "broker", settings) as broker:
        host = broker.address.rpartition(":")[0]
        assert run("orchard", "admin", at=broker.address).out == f"https://{host}:{port}\n"


def test_another_kafka_has_no_admin_port(orchard: Path, run: Run, broker_kind: str) -> None:
    ran = run("orchard", "admin")
    if broker_kind != "leafcuttr":
        assert "is no LeafCuttr, and has no admin port: name the admin port by --admin-server" in ran.err
    assert lines(run("orchard", "admin", "-b", "127.0.0.1:1", "--timeout", "1")) == (
        1,
        ["leafcuttr: no broker answers at 127.0.0.1:1"],
    )


def test_without_options_of_brokers_it_has_to_be_given() -> None:
    def do() -> None:
        command_context().print_line(command_context().admin_address)

    command = of(do, admin_server_option)
    assert run_command(command, "--admin-server", "h:1").out == "h:1\n"
    ran = run_command(command)
    assert (ran.status, "say by --admin-server HOST:PORT where the admin port" in ran.err) == (2, True)


# The context


def of(function: Callable[..., None], *decorators: Callable[..., Any]) -> CliCommand:
    for decorate in reversed(decorators):
        function = decorate(function)
    made = click.command("do")(function)
    return CliCommand("do", "do it", lambda: made)


def test_values_do_not_meet_those_of_the_commands_own_parameters() -> None:
    def do(address: str, timeout: str) -> None:
        "Do."
        context = command_context()
        context.print_line(f"{address} {timeout} {context.bootstrap_server} {context.timeout_s}")

    command = of(do, bootstrap_server_options, click.argument("address"), click.argument("timeout"))
    assert run_command(command, "x", "y", "-b", "h:1", "--timeout", "3").out == "x y h:1 3.0\n"


def test_what_was_typed_for_a_group_is_not_lost_to_a_default_of_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @click.group()
    @bootstrap_server_options
    @json_option
    def group() -> None:
        "A group."

    @group.command()
    @bootstrap_server_options
    @json_option
    def one() -> None:
        "One."
        context = command_context()
        context.print_json([context.bootstrap_server, context.as_json])

    command = CliCommand("do", "do it", lambda: group)
    assert run_command(command, "-b", "h:1", "--json", "one").out == '["h:1", true]\n'
    assert run_command(command, "-b", "h:1", "one", "-b", "h:2").out == '["h:2", false]\n'
    monkeypatch.setenv("LEAFCUTTR_BOOTSTRAP_SERVER", "h:3")
    assert run_command(command, "one").out == '["h:3", false]\n'
    assert run_command(command, "-b", "h:1", "one").out == '["h:1", false]\n'
    assert run_command(command, "-b", "h:1", "one", "-b", "h:2").out == '["h:2", false]\n'


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("bootstrap_server", "bootstrap_server_options"),
        ("timeout_s", "bootstrap_server_options"),
        ("as_json", "json_option"),
        ("admin_address", "admin_server_option"),
    ],
)
def test_an_option_that_the_command_does_not_have_is_named(name: str, option: str) -> None:
    def do() -> None:
        "Do."
        getattr(command_context(), name)

    ran = run_command(of(do))
    assert ran.status == 1
    assert f"the command is not decorated with {option} of leafcuttr_sdk" in ran.err


def test_without_leafcuttr_there_is_no_context() -> None:
    command = click.command("do")(command_context)
    with pytest.raises(RuntimeError, match=r"in a test call leafcuttr_sdk\.testing\.run_command"):
        command.main([], standalone_mode=False)
    context = click.Context(command)
    assert complete_topics(context, click.Argument(["topic"]), "") == []
    assert complete_groups(context, click.Argument(["group"]), "") == []


def test_names_of_any_client_do_not_move_the_cursor() -> None:
    def do() -> None:
        "Do."
        context = command_context()
        context.print_line("a\x1b[2Jb")
        context.print_table(("NAME",), [("c\x1b[2Jd",), (None,)])
        context.fail("e\x1b[2Jf\ng")

    ran = run_command(of(do))
    assert ran == (
        1,
        "a\\x1b[2Jb\nNAME\nc\\x1b[2Jd\n-\n",
        "leafcuttr: e\\x1b[2Jf\\ng\n",
    )


def test_progress_is_silent_where_there_is_no_terminal() -> None:
    def do() -> None:
        "Do."
        with command_context().progress("trees", 2) as advance:
            advance(2)

    assert run_command(of(do)) == (0, "", "")


# Failures


def _kafka_exception() -> None:
    from confluent_kafka import KafkaError, KafkaException

    raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))


def _raise(error: BaseException) -> Callable[[], None]:
    def do() -> None:
        raise error

    return do


FAILURES: dict[str, tuple[Callable[[], Any], int, str]] = {
    "fails": (lambda: command_context().fail("no trees", 3), 3, "leafcuttr: no trees\n"),
    "plugin error": (_raise(PluginError("no trees")), 1, "leafcuttr: no trees\n"),
    "click": (_raise(click.ClickException("no trees")), 1, "leafcuttr: no trees\n"),
    "in a group": (
        _raise(ExceptionGroup("of tasks", [ValueError("x"), PluginError("no trees")])),
        1,
        "leafcuttr: no trees\n",
    ),
    "exit": (_raise(SystemExit(5)), 5, ""),
    "exit with words": (_raise(SystemExit("no trees")), 1, "no trees\n"),
    "key": (lambda: {}["tree"], 1, "leafcuttr: plugin test: command do failed: KeyError: 'tree' ("),
    "broker": (
        _raise(UnknownTopicOrPartition("no topic t")),
        1,
        "leafcuttr: plugin test: command do failed: UnknownTopicOrPartition: no topic t (",
    ),
    "os": (
        lambda: Path("/nowhere/at/all").read_text(),
        1,
        "leafcuttr: plugin test: command do failed: FileNotFoundError: [Errno 2] No such file",
    ),
    "librdkafka": (
        _kafka_exception,
        1,
        "leafcuttr: Topic authorization failed (TOPIC_AUTHORIZATION_FAILED)\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_what_is_raised_ends_as_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raises, status, says = FAILURES[name]
    monkeypatch.delenv("LEAFCUTTR_DEBUG", raising=False)

    def do() -> None:
        "Do."
        raises()

    ran = run_command(of(do, bootstrap_server_options))
    assert (ran.status, ran.out) == (status, "")
    assert ran.err.startswith(says)
    assert ran.err.count("\n") <= 1
    if says.endswith(" ("):
        assert __file__ in ran.err  # the place is the plugin's, not click's


def test_an_error_of_click_is_the_line_of_ours(orchard: Path, run: Run) -> None:
    ran = run("orchard", "lost")
    assert (ran.status, ran.out, ran.err) == (1, "", "leafcuttr: no trees\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_place_for_the_output_is_no_failure_of_the_plugin(orchard: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "leafcuttr", "orchard", "settings"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            env=clean_environ({"KAFKA_LC_PLUGINS_PATH": str(orchard)}),
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "leafcuttr: cannot write the output: No space left on device\n"


def test_what_librdkafka_raises_without_an_address_names_the_plugin() -> None:
    ran = run_command(of(_kafka_exception))
    assert ran.err.startswith("leafcuttr: plugin test: command do failed: KafkaException: ")


@pytest.mark.parametrize(("value", "shown"), [("", False), ("0", False), ("1", True)])
def test_the_traceback_comes_before_the_line_if_it_is_wanted(
    value: str, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAFCUTTR_DEBUG", value)
    ran = run_command(of(lambda: {}["tree"]))
    assert ran.err.startswith("Traceback (most recent call last):\n") is shown
    assert ran.err.splitlines()[-1].startswith("leafcuttr: plugin test: command do failed: KeyError: 'tree'")


def test_a_usage_error_of_a_task_is_wrong_usage() -> None:
    ran = run_command(of(_raise(ExceptionGroup("of tasks", [click.UsageError("no such tree")]))))
    assert (ran.status, ran.err.splitlines()[-1]) == (2, "Error: no such tree")


def test_one_that_cannot_be_loaded_has_its_traceback_too(orchard: Path, run: Run, monkeypatch: Any) -> None:
    ran = run("orchard-broken")
    line = "leafcuttr: the command orchard-broken of plugin orchard cannot be loaded: KeyError: 'key' "
    assert ran.status == 1
    assert ran.err.startswith(line) and ran.err.count("\n") == 1
    monkeypatch.setenv("LEAFCUTTR_DEBUG", "1")
    first, *_, last = run("orchard-broken").err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert last.startswith(line)
