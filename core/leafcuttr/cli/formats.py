"""The record formats that `--format` can name: the ones that are always there, and those of plugins.

The contract is `leafcuttr_sdk.formats`. A command opens what it needs with `opened`; plugins are looked for only where
a name is not one of ours, or where all of them are to be shown. Nothing here knows of files or brokers.

Longer than most rooms because our own four formats live here too.
"""

import base64
import binascii
import contextlib
import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from leafcuttr_sdk.formats import FormatCodec, FormatError, Place, RecordFormat

if TYPE_CHECKING:
    from leafcuttr.plugins.loaded import Loaded

NAME: Final = re.compile(r"[a-z][a-z0-9_-]*\Z")
F = TypeVar("F", bound=Callable[..., Any])


class Formats:
    """Record formats by name, in the order in which they were added.

    `more` has others, with names of their own; it is asked once, when a name is not known or all are wanted.
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
        """Raises FormatError, which names the nearest, for a name that is not known."""
        if name not in self._by_name:
            self._ask_for_more()
        found = self._by_name.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self._by_name, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._by_name)}"
            raise FormatError(f"no format {name!r}: {hint}")
        return found

    def __iter__(self) -> Iterator[RecordFormat]:
        self._ask_for_more()
        return iter(self._by_name.values())

    def _ask_for_more(self) -> None:
        more, self._more = self._more, None
        for one in more() if more else ():
            self.add(one)


class TextFormat:
    """Bytes as text, exactly: in UTF-8 what is not text survives both ways."""

    name = "text"
    summary = "the text itself; bytes that are none pass as they are"
    options: Mapping[str, str] = {"encoding": "any that Python knows [default: utf-8]"}
    json_text = False

    def __init__(self) -> None:
        self._encoding = "utf-8"

    def open(self, options: Mapping[str, str]) -> FormatCodec:
        opened = TextFormat()
        opened._encoding = options.get("encoding", opened._encoding)
        try:
            "".encode(opened._encoding, "surrogateescape")
        except (LookupError, ValueError):
            raise FormatError(f"encoding={opened._encoding}: Python knows no such text encoding") from None
        return opened

    def encode(self, text: str, place: Place) -> bytes:
        try:
            return text.encode(self._encoding, "surrogateescape")
        except UnicodeError as error:
            raise FormatError(str(error)) from None

    def decode(self, data: bytes, place: Place) -> str:
        try:
            return data.decode(self._encoding, "surrogateescape")
        except UnicodeError as error:
            raise FormatError(str(error)) from None

    def close(self) -> None:
        """Holds nothing."""


class JsonFormat:
    """A JSON document, stored as it was written: a number keeps its digits, an object the order of its members."""

    name = "json"
    summary = "one JSON document, checked on its way in and out"
    options: Mapping[str, str] = {}
    json_text = True

    def open(self, options: Mapping[str, str]) -> FormatCodec:
        return self

    def encode(self, text: str, place: Place) -> bytes:
        _check_json(text)
        try:
            return text.strip().encode()
        except UnicodeEncodeError:
            raise FormatError("the text is not UTF-8") from None

    def decode(self, data: bytes, place: Place) -> str:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"no JSON: byte {error.start} is not UTF-8") from None
        _check_json(text)
        # A line end in a document stands between two tokens, never within one.
        return re.sub(r"[\r\n]+[ \t]*", "", text.strip())

    def close(self) -> None:
        """Holds nothing."""


class _BytesFormat:
    """What `hex` and `base64` share: any bytes, written in a few letters."""

    options: Mapping[str, str] = {}
    json_text = False

    def open(self, options: Mapping[str, str]) -> FormatCodec:
        return self

    def close(self) -> None:
        """Holds nothing."""

    def encode(self, text: str, place: Place) -> bytes:
        raise NotImplementedError

    def decode(self, data: bytes, place: Place) -> str:
        raise NotImplementedError


class HexFormat(_BytesFormat):
    """Two digits a byte; space between bytes and a `0x` before them are taken too."""

    name = "hex"
    summary = "two hexadecimal digits a byte"

    def encode(self, text: str, place: Place) -> bytes:
        digits = text.strip().removeprefix("0x").removeprefix("0X")
        try:
            return bytes.fromhex(digits)
        except ValueError:
            raise FormatError(f"{_cut(digits)} is not pairs of hexadecimal digits") from None

    def decode(self, data: bytes, place: Place) -> str:
        return data.hex()


class Base64Format(_BytesFormat):
    """RFC 4648 with padding; its URL-safe letters are taken too."""

    name = "base64"
    summary = "base64 (RFC 4648) with padding"

    def encode(self, text: str, place: Place) -> bytes:
        try:
            return base64.b64decode(text.strip().translate(_STANDARD_LETTERS), validate=True)
        except (binascii.Error, ValueError):
            raise FormatError(f"{_cut(text)} is not base64") from None

    def decode(self, data: bytes, place: Place) -> str:
        return base64.b64encode(data).decode("ascii")


_STANDARD_LETTERS: Final = str.maketrans("-_", "+/")


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_JSON: Final = json.JSONDecoder(parse_constant=_refuse)


def _check_json(text: str) -> None:
    """Raises FormatError, with the column, for text that is not one JSON document."""
    try:
        _JSON.decode(text)
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno} column {error.colno}"
        raise FormatError(f"no JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise FormatError("no JSON that can be read here: it is nested too deeply") from None
    except ValueError as error:
        raise FormatError(f"no JSON: {error}") from None


def _cut(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def known_formats() -> Formats:
    """The formats of this installation, those of plugins last."""
    return Formats([TextFormat(), JsonFormat(), HexFormat(), Base64Format()], _of_plugins)


def own_names() -> frozenset[str]:
    """The names that no plugin's format can have."""
    return frozenset({TextFormat.name, JsonFormat.name, HexFormat.name, Base64Format.name})


def _of_plugins() -> Iterator[RecordFormat]:
    from leafcuttr.cli.installed import formats_of, installed

    for plugin, one in formats_of(installed(), own_names()).values():
        yield _PluginFormat(plugin, one)


class _PluginFormat:
    """A plugin's format. Whatever it raises is a FormatError here: one line, and `--skip-errors` can pass over it."""

    def __init__(self, plugin: "Loaded", of: RecordFormat) -> None:
        self._plugin = plugin
        self._of = of
        self.name = of.name
        self.summary = str(getattr(of, "summary", ""))
        self.options: Mapping[str, str] = getattr(of, "options", {})

    def open(self, options: Mapping[str, str]) -> FormatCodec:
        try:
            return _PluginCodec(self._of.open(options))
        except FormatError:
            raise
        except (Exception, SystemExit) as error:
            why = self._plugin.lacks if self._plugin.missing else _described(error)
            raise FormatError(f"{self.name} of plugin {self._plugin.name} cannot be had: {why}") from None


class _PluginCodec:
    def __init__(self, of: FormatCodec) -> None:
        self._of = of
        self.json_text = bool(of.json_text)

    def encode(self, text: str, place: Place) -> bytes:
        try:
            return self._of.encode(text, place)
        except FormatError:
            raise
        except Exception as error:
            raise FormatError(_described(error)) from None

    def decode(self, data: bytes, place: Place) -> str:
        try:
            return self._of.decode(data, place)
        except FormatError:
            raise
        except Exception as error:
            raise FormatError(_described(error)) from None

    def close(self) -> None:
        self._of.close()


def _described(error: BaseException) -> str:
    from leafcuttr.plugins.importing import described

    return described(error)


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [one.name for one in known_formats() if one.name.startswith(incomplete)]


class _FormatOption(click.Option):
    """Names the formats in its help; plugins are looked for when somebody reads it."""

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


@contextlib.contextmanager
def opened(
    value_format: str, key_format: str | None, settings: Sequence[str]
) -> Iterator[tuple[FormatCodec, FormatCodec]]:
    """The codecs for keys and for values. Raises click.UsageError for what the user named wrongly."""
    given: dict[str, str] = {}
    for item in settings:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.UsageError(f"--format-option {item}: expected NAME=VALUE")
        given[name] = value
    known = known_formats()
    with contextlib.ExitStack() as stack:
        try:
            formats = [known.get(key_format or "text"), known.get(value_format)]
            for name in given:
                if not any(name in one.options for one in formats):
                    names = sorted({option for one in formats for option in one.options})
                    raise FormatError(f"no option {name!r} here: there are {', '.join(names) or 'none'}")
            codecs = []
            for one in formats:
                codec = one.open({name: value for name, value in given.items() if name in one.options})
                stack.callback(codec.close)
                codecs.append(codec)
        except FormatError as error:
            raise click.UsageError(f"--format: {error}") from None
        yield codecs[0], codecs[1]
