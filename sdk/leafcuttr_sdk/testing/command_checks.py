"""Conformance of commands: `leafcuttr_sdk.cli` says what they promise.

Each is called as `leafcuttr` calls it, in this process: with `--help` and with an option that it does not have; and,
where no word has to be given or `calls` has the words, with `--json` and with a broker that does not answer.
"""

import json
import re
import socket
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from os import environ
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.cli import CliCommand
from leafcuttr_sdk.testing.commands import CommandResult, run_loaded
from leafcuttr_sdk.testing.report import Notes, Report, told

if TYPE_CHECKING:
    import click

_PROMISES: Final = {
    "loads": "it loads, and is a command of click",
    "help": "it says what it is for",
    "usage": "an option that it does not have is wrong usage: status 2",
    "options": "an option that LeafCuttr's own commands have is the one of the SDK",
    "json": "with --json it prints JSON, and nothing else on standard output",
    "unreachable": "a broker that does not answer is one line, and a status other than 0",
}
_UNKNOWN: Final = "--no-option-of-this-name"
_PATIENCE_S: Final = 1
"""`--timeout` of a call with a broker that does not answer."""
_BROKER: Final = "LEAFCUTTR_BOOTSTRAP_SERVER"
_ADMIN: Final = "LEAFCUTTR_ADMIN_SERVER"

Calls = Iterable[Sequence[str]]
Brokers = Callable[[], AbstractContextManager[Mapping[str, str] | None]]
"""Starts a broker; gives `LEAFCUTTR_BOOTSTRAP_SERVER` and `LEAFCUTTR_ADMIN_SERVER`, or None if there is none."""


def check_command(
    command: CliCommand,
    *,
    plugin: ModuleType | None = None,
    calls: Calls = (),
    bootstrap_server: str | None = None,
    admin_server: str | None = None,
) -> None:
    """Check a command, and those in it if it is a group. Raises ContractError with all that is wrong.

    `calls` are words that it can be called with, each as they follow its name: `[("list",), ("show", "tea")]`. They,
    and what needs no words, are called with `--json` if they have `json_option`, and with a broker that does not answer
    if they have `bootstrap_server_options` or `admin_server_option`; they must do no harm. Those that have options of
    both kinds get `--json` only if `bootstrap_server` or `admin_server`, the admin port, says which broker.
    """
    given = {_BROKER: bootstrap_server, _ADMIN: admin_server}
    variables = {name: value for name, value in given.items() if value is not None}

    @contextmanager
    def running() -> Generator[Mapping[str, str]]:
        yield variables

    brokers = running if variables else None
    command_report(command, plugin=plugin, calls=calls, brokers=brokers).raise_problems()


def command_report(
    command: CliCommand,
    *,
    plugin: ModuleType | None = None,
    calls: Calls = (),
    brokers: Brokers | None = None,
) -> Report:
    """The report that `check_command` would raise. `brokers` is used if there is a call for it."""
    notes = Notes("command", command.name, _PROMISES)
    if not command.summary or command.summary[0].isupper() or command.summary.endswith("."):
        notes.add(
            "help",
            f"its summary is {command.summary!r}: a few words in lower case, without a full stop",
        )
    made = _loaded(command, notes)
    if made is None:
        return notes.report(["loads", "help"])
    trial = _Trial(command.name, made, plugin, notes)
    trial.run([tuple(words) for words in calls], brokers)
    return notes.report(trial.done)


def _loaded(command: CliCommand, notes: Notes) -> "click.Command | None":
    import click

    try:
        made = cast("object", command.load())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        notes.add("loads", f"load() raised {told(error)}")
        return None
    if not isinstance(made, click.Command):
        notes.add("loads", f"load() returned {kind_of(made)}, not a click.Command")
        return None
    if not made.help:
        notes.add("help", "it has no help: write a docstring; --help shows it")
    return made


class _Leaf(NamedTuple):
    """A command that is no group."""

    path: tuple[str, ...]
    """The names below the first."""
    command: "click.Command"
    kept: Mapping[str, int]
    """The options of the SDK that it has, or a group above it: after how many names of the path they stand."""

    def line(self, name: str, option: tuple[str, ...], words: tuple[str, ...]) -> tuple[str, ...]:
        """With one of these options, kept as `name`, if it has it, and with words at the end."""
        at = self.kept.get(name)
        if at is None:
            return (*self.path, *words)
        return (*self.path[:at], *option, *self.path[at:], *words)

    @property
    def uses_a_broker(self) -> bool:
        return "address" in self.kept or "admin_server" in self.kept

    @property
    def needs_words(self) -> bool:
        return any(parameter.required for parameter in self.command.params)


class _Trial:
    def __init__(self, name: str, command: "click.Command", plugin: ModuleType | None, notes: Notes) -> None:
        self._name = name
        self._plugin = plugin
        self._command = command
        self._notes = notes
        self.done = {"loads", "help", "usage", "options"}

    def run(self, calls: list[tuple[str, ...]], brokers: Brokers | None) -> None:
        leaves = list(self._leaves(self._command, (), {}))
        wanted = [(leaf, words) for leaf in leaves for words in _calls_of(leaf, calls)]
        for leaf in leaves:
            self._look_at_usage(leaf)
        for leaf, words in wanted:
            if leaf.uses_a_broker:
                self._without_a_broker(leaf, words)
        printing = [(leaf, words) for leaf, words in wanted if "as_json" in leaf.kept]
        for leaf, words in printing:
            if not leaf.uses_a_broker:
                self._as_json(leaf, words, {})
        printing = [(leaf, words) for leaf, words in printing if leaf.uses_a_broker]
        if printing and brokers is not None:
            with brokers() as variables:
                # Without them the command would find a broker of the person's own.
                for leaf, words in printing if variables is not None else ():
                    self._as_json(leaf, words, variables or {})

    def _leaves(
        self, command: "click.Command", path: tuple[str, ...], kept: Mapping[str, int]
    ) -> Iterator[_Leaf]:
        import click

        from leafcuttr_sdk import _cli_options

        own = {str(one.name): len(path) for one in command.params if _cli_options.is_kept(one)}
        kept = {**kept, **{name.removeprefix(_cli_options.PREFIX): at for name, at in own.items()}}
        self._look_at_options(command, path)
        if not isinstance(command, click.Group):
            yield _Leaf(path, command, kept)
            return
        context = click.Context(command, info_name=path[-1] if path else self._name)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                if not found.help:
                    self._notes.add("help", f"{' '.join((*path, name))} has no help: write a docstring")
                yield from self._leaves(found, (*path, name), kept)

    def _look_at_options(self, command: "click.Command", path: tuple[str, ...]) -> None:
        from leafcuttr_sdk import _cli_options

        for one in command.params:
            for option, name in _OWN.items():
                own = option in one.opts and not _cli_options.is_kept(one)
                # A file of JSON may well be called so.
                if own and (option != "--json" or getattr(one, "is_flag", False)):
                    where = f" of {' '.join(path)}" if path else ""
                    self._notes.add(
                        "options",
                        f"it declares {option}{where} by itself: decorate it with {name} of leafcuttr_sdk, which acts "
                        "as in all commands",
                    )

    def _look_at_usage(self, leaf: _Leaf) -> None:
        for word, status in (("--help", 0), (_UNKNOWN, 2)):
            if word == "--help" and not leaf.command.add_help_option:
                continue
            if word == _UNKNOWN and leaf.command.context_settings.get("ignore_unknown_options"):
                continue
            ran = self._called((*leaf.path, word))
            if ran.status != status:
                self._notes.add(
                    "usage",
                    f"{self._line((*leaf.path, word))} ended with status {_ended(ran)}, not {status}",
                )

    def _without_a_broker(self, leaf: _Leaf, words: tuple[str, ...]) -> None:
        self.done.add("unreachable")
        with _nobody() as address:
            variables = {_BROKER: address, _ADMIN: address}
            ran = self._called(leaf.line("timeout", ("--timeout", str(_PATIENCE_S)), words), variables)
        line = self._line((*leaf.path, *words))
        if ran.status == 0:
            self._notes.add("unreachable", f"{line} ended with status 0 where no broker answers")
            return
        lines = ran.err.splitlines()
        unhandled = re.match(r"leafcuttr: plugin \S+: command \S+ failed: (.*)", ran.err)
        if unhandled:
            self._notes.add(
                "unreachable",
                f"{line} left {unhandled[1]}: make clients with `client` of command_context(), or end with "
                "its `fail`",
            )
        elif len(lines) != 1:
            said = repr(ran.err[-200:])
            self._notes.add(
                "unreachable",
                f"{line} wrote {len(lines)} lines where no broker answers, and one is enough: {said}",
            )

    def _as_json(self, leaf: _Leaf, words: tuple[str, ...], variables: Mapping[str, str]) -> None:
        self.done.add("json")
        given = leaf.line("as_json", ("--json",), words)
        ran, line = self._called(given, variables), self._line(given)
        try:
            # One document, or one a line.
            for text in [ran.out] if _is_json(ran.out) else ran.out.splitlines():
                json.loads(text)
        except ValueError:
            self._notes.add("json", f"{line} printed {ran.out[:200]!r}, which is no JSON")
            return
        if ran.status == 0 and not ran.out.strip():
            self._notes.add("json", f"{line} printed nothing: print_json([]) says that there is nothing")
        elif ran.status not in (0, 1) or " failed: " in ran.err:
            self._notes.add("json", f"{line} ended with status {_ended(ran)}")

    def _called(self, words: tuple[str, ...], variables: Mapping[str, str] | None = None) -> CommandResult:
        with _environment(variables or {}):
            return run_loaded(self._name, self._command, *words, plugin=self._plugin)

    def _line(self, words: tuple[str, ...]) -> str:
        return f"`{' '.join((self._name, *words))}`"


_OWN: Final = {
    "--bootstrap-server": "bootstrap_server_options",
    "--json": "json_option",
    "--admin-server": "admin_server_option",
}


def _calls_of(leaf: _Leaf, calls: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Words after the path of the leaf."""
    found = [words[len(leaf.path) :] for words in calls if words[: len(leaf.path)] == leaf.path]
    yield from found
    if not found and not leaf.needs_words:
        yield ()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _ended(ran: CommandResult) -> str:
    lines = (ran.err or ran.out).strip().splitlines() or ["nothing was said"]
    return f"{ran.status} ({lines[-1][:200]})"


@contextmanager
def _nobody() -> Generator[str]:
    """An address at which nothing listens, and nothing else will meanwhile: bound, and not listened to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def _environment(variables: Mapping[str, str]) -> Generator[None]:
    """These, and no others of the two that would name a broker of the person's own."""
    before: dict[str, Any] = {name: environ.pop(name, None) for name in (_BROKER, _ADMIN)}
    environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            environ.pop(name, None)
            if value is not None:
                environ[name] = value
