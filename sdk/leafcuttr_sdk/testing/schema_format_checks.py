"""Conformance of schema formats: `leafcuttr_sdk.schemas` says what they promise.

A format is given texts of all kinds, and the examples of its own rules. It may refuse any text that is not its own, but
only in the one way that a registry can tell its clients of: SchemaError with one line.
"""

import pickle
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar, cast

from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.schemas import Difference, ParsedSchema, ResolvedReference, SchemaError, SchemaFormat
from leafcuttr_sdk.testing.report import Notes, Report, literally, told

T = TypeVar("T")

_PROMISES: Final = {
    "named": "its name is in upper case, and it says what it is",
    "sent": "it can be sent to a worker process",
    "parses": "a text becomes a schema, or it raises SchemaError with one line",
    "canonical": "the canonical text is that of the same schema, and so is the normalized one",
    "compares": "a schema can read what it has written, and each difference is one of its rules with a sentence",
    "rules": "the example of each rule is told by `differences`, if and only if the rule breaks",
    "codec": "what a schema's codec refuses it refuses with DataError",
}
_NAME: Final = re.compile(r"[A-Z][A-Z0-9_-]*\Z")
_NO_REFERENCES: Final[Mapping[str, ResolvedReference]] = {}
_TEXTS: Final = (
    "",
    " ",
    "null",
    "{}",
    "[]",
    '"string"',
    '{"type":"string"}',
    "{",
    "\0",
    "\ud800",
    "Größe 🌡",
    "[" * 100_000,
    '{"a":' * 100_000,
    "(" * 100_000,
    "x" * 1_000_000,
)
_DATA: Final = (b"", b"\0", b"\xff" * 40, b'{"a":1}', bytes(range(256)))


def check_schema_format(format: SchemaFormat, *, texts: Iterable[str] = ()) -> None:
    """Check a format of schemas. `texts` are some that it takes: it has to. Raises ContractError with all that is
    wrong."""
    schema_format_report(format, texts).raise_problems()


def schema_format_report(format: SchemaFormat, texts: Iterable[str] = ()) -> Report:
    """The report that `check_schema_format` would raise."""
    name: Any = format.name
    notes = Notes("schema format", str(name), _PROMISES)
    if not isinstance(name, str) or not _NAME.match(name):
        notes.add(
            "named", f"its name is {name!r}: upper-case letters, digits, `-` and `_`, beginning with a letter"
        )
    summary: Any = format.summary
    if not isinstance(summary, str) or len(summary.splitlines()) != 1:
        notes.add("named", f"its summary is {summary!r}: a few words on one line")
    try:
        pickle.loads(pickle.dumps(format))
    except Exception as error:
        notes.add(
            "sent", literally(f"pickle raises {told(error)}: its class has to be one that a module defines")
        )
    trial = _Trial(format, notes)
    for text in _TEXTS:
        trial.take(text, must=False)
    for text in texts:
        trial.take(text, must=True)
    trial.rules()
    return notes.report()


class _Trial:
    def __init__(self, format: SchemaFormat, notes: Notes) -> None:
        self._format = format
        self._notes = notes

    def take(self, text: str, *, must: bool) -> ParsedSchema | None:
        schema = self._parse(text, must)
        if schema is not None:
            self._check_canonical(text, schema)
            self._same(text, schema)
            self._check_codec(text, schema)
        return schema

    def rules(self) -> None:
        known = {rule.type for rule in self._format.rules}
        for rule in self._format.rules:
            old, new = self.take(rule.old, must=True), self.take(rule.new, must=True)
            if old is None or new is None:
                continue
            found = self._differences(new, old, f"the example of {rule.type}")
            types = {each.type for each in found or ()}
            if rule.breaks and rule.type not in types:
                self._notes.add(
                    "rules", literally(f"the example of {rule.type} gives {sorted(types) or 'nothing'}")
                )
            elif not rule.breaks and types:
                self._notes.add(
                    "rules", literally(f"{rule.type} breaks nothing, its example gives {sorted(types)}")
                )
            if found and not types <= known:
                self._notes.add("compares", literally(f"{sorted(types - known)} are none of its rules"))

    def _parse(self, text: str, must: bool) -> ParsedSchema | None:
        try:
            return self._format.parse(text, _NO_REFERENCES)
        except SchemaError as error:
            if must:
                self._notes.add("parses", literally(f"it refuses {_shown(text)}: {told(error)}"))
            elif len(str(error).splitlines()) != 1:
                self._notes.add("parses", literally(f"the SchemaError for {_shown(text)} is not one line"))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._notes.add(
                "parses",
                literally(f"it raised {told(error)} for {_shown(text)}: raise SchemaError for what is none"),
            )
        return None

    def _check_canonical(self, text: str, schema: ParsedSchema) -> None:
        for what, call in (("canonical", lambda: schema.canonical), ("normalized()", schema.normalized)):
            made = self._call("canonical", call, text)
            if made is None:
                continue
            if not isinstance(cast("object", made), str):
                self._notes.add(
                    "canonical", literally(f"{what} of {_shown(text)} is {kind_of(made)}, not a text")
                )
                continue
            again = self._parse(made, must=True)
            if again is None:
                continue
            twice = self._call("canonical", partial(getattr, again, "canonical"), made)
            if what == "canonical" and twice != made:
                self._notes.add(
                    "canonical", literally(f"the canonical text of {_shown(made)} is another one")
                )
            if self._differences(again, schema, _shown(made)) or self._differences(
                schema, again, _shown(made)
            ):
                self._notes.add("canonical", literally(f"{what} of {_shown(text)} is another schema"))

    def _same(self, text: str, schema: ParsedSchema) -> None:
        if self._differences(schema, schema, _shown(text)):
            self._notes.add("compares", literally(f"{_shown(text)} cannot read what it has written"))

    def _check_codec(self, text: str, schema: ParsedSchema) -> None:
        from leafcuttr_sdk.schemas import DataError

        try:
            codec = schema.codec()
        except DataError:
            return
        for data in _DATA:
            for call in (codec.decode, codec.check):
                try:
                    call(data)
                except DataError:
                    pass
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    self._notes.add("codec", literally(f"the codec of {_shown(text)} raised {told(error)}"))

    def _differences(
        self, reader: ParsedSchema, writer: ParsedSchema, what: str
    ) -> "list[Difference] | None":
        found = self._call("compares", lambda: list(self._format.differences(reader, writer)), what)
        for each in found or ():
            if len(each.message.splitlines()) != 1:
                self._notes.add(
                    "compares", literally(f"{each.type} of {what} has no sentence: {each.message!r}")
                )
        return found

    def _call(self, check: str, call: Callable[[], T], what: str) -> T | None:
        try:
            return call()
        except SchemaError:
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._notes.add(check, literally(f"it raised {told(error)} for {_shown(what)}"))
            return None


def _shown(text: str) -> str:
    return ascii(text) if len(text) <= 60 else f"{text[:60]!a}..."
