"""The record formats that `--format` can name: the ones that are always there, and those of plugins.

The contract is `leafcuttr_sdk.formats`, ours are in `own_formats`. A command opens what it needs with `opened`; plugins
are looked for only if a name is not one of ours, or if all of them are to be shown. This module knows no files or
brokers.
"""

import contextlib
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.installed import installed, offered
from leafcuttr.cli.common.records.own_formats import NAME, OWN_FORMATS, OWN_NAMES
from leafcuttr.runtime.plugin_parts import Part, PartError, call
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.formats import FormatCodec, FormatError, Place, RecordFormat

if TYPE_CHECKING:
    from random import Random

    from leafcuttr.plugins.loaded import Loaded
    from leafcuttr.plugins.table import Plugins
    from leafcuttr_sdk.records import Record

_END: Final = object()
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
U = TypeVar("U")


class Formats:
    """Record formats by name, in the order in which they were added.

    `more` has others, with names of their own; it is called once, when a name is not found or all are wanted.
    """

    def __init__(
        self, formats: Sequence[RecordFormat] = (), more: Callable[[], Iterable[RecordFormat]] | None = None
    ) -> None:
        self._by_name: dict[str, RecordFormat] = {}
        self._more = more
        for one in formats:
            self.add(one)

    def add(self, added: RecordFormat) -> None:
        """Raises ValueError for a name that is taken or that cannot be typed after `--format`."""
        if not NAME.match(added.name):
            raise ValueError(f"{added.name!r} cannot name a format: lower case letters, digits, - and _")
        if added.name in self._by_name:
            raise ValueError(f"there is a format {added.name} already")
        self._by_name[added.name] = added

    def get(self, name: str) -> RecordFormat:
        """Raises FormatError, which names the nearest, for an unknown name."""
        if name not in self._by_name:
            self._load_more()
        found = self._by_name.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self._by_name, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._by_name)}"
            raise FormatError(f"no format {name!r}: {hint}")
        return found

    def __iter__(self) -> Iterator[RecordFormat]:
        self._load_more()
        return iter(self._by_name.values())

    def _load_more(self) -> None:
        more, self._more = self._more, None
        for one in more() if more else ():
            self.add(one)


def known_formats() -> Formats:
    """The formats of this installation, those of plugins last."""
    return Formats([one() for one in OWN_FORMATS], _of_plugins)


def formats_of(plugins: "Plugins") -> "dict[str, tuple[Loaded, RecordFormat]]":
    """By name, in the order of the plugins. One with a name of ours, or of another plugin's format, is left out."""
    return offered("format", plugins.record_formats(), OWN_NAMES, NAME, "lower-case letters, digits, - and _")


def _of_plugins() -> Iterator[RecordFormat]:
    for plugin, one in formats_of(installed()).values():
        yield _PluginFormat(plugin, one)


class _PluginFormat:
    """A plugin's format. Any exception of it becomes a FormatError: one line, and `--skip-errors` can pass over it."""

    def __init__(self, plugin: "Loaded", of: RecordFormat) -> None:
        self._plugin = plugin
        self._of = of
        self._part = Part(plugin.name, f"format {of.name}")
        self.name = of.name
        self.summary = ""
        self.options: Mapping[str, str] = {}
        self.makes_records = callable(getattr(of, "make_records", None))
        self._broken: PartError | None = None
        try:
            self.summary, self.options = call(self._part, _summary_and_options, of)
        except PartError as failed:
            self._broken = failed

    def open(self, options: Mapping[str, str]) -> FormatCodec:
        try:
            if self._broken is not None:
                raise self._broken
            return call(self._part, _PluginCodec, self._part, options, self._of)
        except PartError as failed:
            if isinstance(failed.cause, FormatError):
                raise FormatError(failed.words) from None
            why = self._plugin.lacks if self._plugin.missing else failed.why
            raise FormatError(f"{self.name} of plugin {self._plugin.name} cannot be loaded: {why}") from None

    def make_records(self, topic: str, options: Mapping[str, str], random: "Random") -> "Iterator[Record]":
        """What the plugin's makes, each checked. Raises FormatError for it, and for whatever else that raises."""
        try:
            made = call(self._part, _begun, self._of, topic, options, random)
            while True:
                record = call(self._part, next, made, _END)
                if record is _END:
                    return
                yield call(self._part, _record_of, record)
        except PartError as failed:
            said = isinstance(failed.cause, FormatError)
            raise FormatError(failed.words if said else str(failed)) from None


def _begun(of: Any, topic: str, options: Mapping[str, str], random: "Random") -> Iterator[object]:
    return iter(of.make_records(topic, options, random))


def _record_of(made: Any) -> "Record":
    """As it can be sent. Raises PluginError."""
    from leafcuttr_sdk._sendable import why_not_sent

    wrong = why_not_sent(made)
    if wrong is not None:
        raise PluginError(f"make_records: {wrong}")
    record: Record = made
    return record


def _summary_and_options(of: RecordFormat) -> tuple[str, Mapping[str, str]]:
    options = getattr(of, "options", {})
    if not isinstance(options, Mapping):
        raise PluginError(f"its options are {kind_of(options)}; they have to be a mapping")
    return str(getattr(of, "summary", "")), {str(name): str(summary) for name, summary in options.items()}


class _PluginCodec:
    """Raises what `open` raises."""

    def __init__(self, part: Part, options: Mapping[str, str], of: RecordFormat) -> None:
        self._part = part
        self._of = of.open(options)
        self.json_text = bool(self._of.json_text)
        self.needs_headers = bool(getattr(self._of, "needs_headers", False))

    def encode(self, text: str, place: Place) -> bytes:
        return self._converted(bytes, self._of.encode, text, place)

    def decode(self, data: bytes, place: Place) -> str:
        return self._converted(str, self._of.decode, data, place)

    def close(self) -> None:
        try:
            call(self._part, self._of.close)
        except PartError as failed:
            raise Failure(str(failed)) from None

    def _converted(self, kind: type[T], convert: Callable[[U, Place], T], given: U, place: Place) -> T:
        try:
            result = call(self._part, convert, given, place)
        except PartError as failed:
            said = isinstance(failed.cause, FormatError)
            raise FormatError(failed.words if said else str(failed)) from None
        if not isinstance(result, kind):
            why = f"it returned {kind_of(result)}, not {kind.__name__}"
            raise FormatError(str(PartError(self._part, why)))
        return result


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [one.name for one in known_formats() if one.name.startswith(incomplete)]


class _FormatOption(click.Option):
    """Names the formats in its help; plugins are looked for only when it is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        if record is None:
            return None
        formats = "; ".join(f"{one.name}: {one.summary}" for one in known_formats())
        return record[0], record[1].replace("{formats}", formats)


def format_options(function: F) -> F:
    """`--format`, `--key-format` and `--format-option`."""
    options = [
        click.option(
            "--format",
            "value_format",
            default="text",
            show_default=True,
            metavar="NAME",
            shell_complete=_complete,
            cls=_FormatOption,
            help="How the bytes of values are written as text: {formats}.",
        ),
        click.option(
            "--key-format",
            metavar="NAME",
            shell_complete=_complete,
            help="The same for keys.  [default: text]",
        ),
        click.option(
            "--format-option",
            "format_settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="An option of the formats, as encoding=latin-1 for text; may be repeated.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def options_given(settings: Sequence[str]) -> dict[str, str]:
    """Those of `--format-option`. Raises click.UsageError."""
    given: dict[str, str] = {}
    for item in settings:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.UsageError(f"--format-option {item}: expected NAME=VALUE")
        given[name] = value
    return given


def check_options(given: Mapping[str, str], formats: Sequence[RecordFormat]) -> None:
    """Raises FormatError for one that none of the formats knows."""
    for name in given:
        if not any(name in one.options for one in formats):
            names = sorted({option for one in formats for option in one.options})
            raise FormatError(f"no option {name!r}: there are {', '.join(names) or 'none'}")


@contextlib.contextmanager
def opened(
    value_format: str, key_format: str | None, settings: Sequence[str]
) -> Iterator[tuple[FormatCodec, FormatCodec]]:
    """The codecs for keys and for values. Raises click.UsageError for what the user named wrongly."""
    given = options_given(settings)
    known = known_formats()
    with contextlib.ExitStack() as stack:
        try:
            formats = [known.get(key_format or "text"), known.get(value_format)]
            check_options(given, formats)
            codecs = []
            for one in formats:
                codec = one.open({name: value for name, value in given.items() if name in one.options})
                stack.callback(codec.close)
                codecs.append(codec)
        except FormatError as error:
            raise click.UsageError(f"--format: {error}") from None
        yield codecs[0], codecs[1]
