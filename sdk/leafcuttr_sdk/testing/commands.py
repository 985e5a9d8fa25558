"""Commands of a plugin, run in this process as `leafcuttr` runs them."""

import contextlib
import io
import sys
from collections.abc import Generator
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from leafcuttr_sdk.cli import CliCommand
from leafcuttr_sdk.testing.installed import name_of

if TYPE_CHECKING:
    import click


class CommandResult(NamedTuple):
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


def run_command(
    command: CliCommand, *words: str, plugin: ModuleType | None = None, stdin: str = ""
) -> CommandResult:
    """Run a command as `leafcuttr NAME WORDS...` does, with `stdin` as its standard input. `plugin` is the module of
    the plugin, which lines on failures name; it need not be installed."""
    return run_loaded(command.name, command.load(), *words, plugin=plugin, stdin=stdin)


def run_loaded(
    name: str, command: "click.Command", *words: str, plugin: ModuleType | None = None, stdin: str = ""
) -> CommandResult:
    """The same for one that is loaded."""
    from leafcuttr.cli.common.plugin_commands import OneCommand
    from leafcuttr.runtime.plugin_parts import Part

    owner = name_of(plugin) if plugin is not None else "test"
    group = OneCommand(Part(owner, f"command {name}"), name, command)
    status: Any = 0
    with _streams(stdin) as (out, err):
        try:
            group.main([name, *words], prog_name="leafcuttr")
        except SystemExit as ended:
            status = ended.code or 0
            if not isinstance(status, int):  # sys.exit("why")
                print(status, file=sys.stderr)
                status = 1
    return CommandResult(status, out.text(), err.text())


class _Stream(io.TextIOWrapper):
    """With bytes below, as a command may expect them."""

    def __init__(self, data: bytes = b"") -> None:
        self._bytes = io.BytesIO(data)
        super().__init__(self._bytes, "utf-8", newline="")

    def text(self) -> str:
        self.flush()
        return self._bytes.getvalue().decode(errors="replace")


@contextlib.contextmanager
def _streams(text: str) -> Generator[tuple[_Stream, _Stream]]:
    out, err = _Stream(), _Stream()
    before, sys.stdin = sys.stdin, _Stream(text.encode())
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield out, err
    finally:
        sys.stdin = before
