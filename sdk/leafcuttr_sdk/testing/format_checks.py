"""Conformance of record formats: `leafcuttr_sdk.formats` says what they promise.

A format is opened and given bytes and texts. It may refuse any of them, but only in the one way that a command can tell
the person of: FormatError with one line.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from random import Random
from typing import Any, Final, TypeVar, cast

from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk._sendable import why_not_sent
from leafcuttr_sdk.formats import FormatCodec, FormatError, Place, RecordFormat
from leafcuttr_sdk.records import Record
from leafcuttr_sdk.testing.report import Notes, Report, told
from leafcuttr_sdk.testing.samples import sample_records

T = TypeVar("T")

_PROMISES: Final = {
    "named": "its name can be typed after --format, and it says what it is",
    "opens": "it opens without options, more than once",
    "decodes": "bytes become text, or it raises FormatError with one line",
    "encodes": "text becomes bytes, or it raises FormatError with one line",
    "there and back": "the text of what it has encoded means the same bytes again",
    "json": "where json_text says so, each text is JSON on one line",
    "headers": "where needs_headers says so, it decodes with any headers, and without",
    "makes records": "make_records yields records that can be sent, the same ones for the same seed, and it decodes "
    "their values",
    "closes": "it can be closed, also after an error",
}
_MADE: Final = 200
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*\Z")
_TEXTS: Final = (
    "",
    "hello",
    "21.5",
    "Größe 🌡",
    '{"a": [1, null]}',
    '"text"',
    "null",
    "two\nlines",
    "\udcff",
    "\0",
)
_PLACES: Final = (Place("test", "key"), Place("test", "value"))
_HEADERS: Final = (
    ("", None),
    ("__key_schema_id", None),
    ("__key_schema_id", b""),
    ("__value_schema_id", b"\0"),
    ("__value_schema_id", b"\1" * 17),
    ("Größe", b"\xff"),
)
"""Repeated, without a value, of no text; names that codecs of schemas look for among them."""


def check_record_format(
    format: RecordFormat, *, options: Mapping[str, str] | None = None, texts: Iterable[str] = ()
) -> None:
    """Check a record format, opened with `options`. `texts` are some that it takes: it has to, and to give them back.
    Raises ContractError with all that is wrong."""
    format_report(format, options, texts).raise_problems()


def format_report(
    format: RecordFormat, options: Mapping[str, str] | None = None, texts: Iterable[str] = ()
) -> Report:
    """The report that `check_record_format` would raise."""
    name: Any = format.name
    notes = Notes("record format", str(name), _PROMISES)
    if not isinstance(name, str) or not _NAME.match(name):
        notes.add(
            "named", f"its name is {name!r}: lower-case letters, digits, `-` and `_`, beginning with a letter"
        )
    for word, about in {"its summary": format.summary, **dict(format.options)}.items():
        if not about or len(about.splitlines()) != 1:
            notes.add("named", f"{word} is {about!r}: a few words on one line")
    try:
        codec = format.open(options or {})
        format.open(options or {}).close()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        notes.add("opens", f"open({dict(options or {})}) raised {told(error)}")
        return notes.report(["named", "opens"])
    trial = _Trial(codec, notes)
    for sample in sample_records():
        for data in (sample.record.key, sample.record.value):
            if data is not None:
                trial.decode(data)
                trial.decode_with(data, sample.record.headers)
    for text in _TEXTS:
        trial.there_and_back(text, must=False)
    for text in texts:
        trial.there_and_back(text, must=True)
    checked = set(_PROMISES)
    if hasattr(format, "make_records"):
        trial.made_by(format, dict(options or {}))
    else:
        checked.remove("makes records")
    if not trial.needs_headers:
        checked.remove("headers")
    try:
        codec.close()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        notes.add("closes", f"close() raised {told(error)}")
    return notes.report(checked)


class _Trial:
    def __init__(self, codec: FormatCodec, notes: Notes) -> None:
        self._codec = codec
        self._notes = notes
        claim = cast("object", codec.json_text)
        if not isinstance(claim, bool):
            notes.add("json", f"json_text is {claim!r}: it is True or False")
        self._json = claim is True
        needs: object = getattr(codec, "needs_headers", False)
        if not isinstance(needs, bool):
            notes.add("headers", f"needs_headers is {needs!r}: it is True or False")
        self.needs_headers = needs is not False

    def decode(self, data: bytes) -> None:
        for place in _PLACES:
            text = self._call("decodes", partial(self._codec.decode, data), place, str, _shown(data))
            if text is not None and self._json:
                self._check_json(text)

    def decode_with(self, data: bytes, headers: Sequence[tuple[str, bytes | None]]) -> None:
        """If it needs them."""
        if self.needs_headers:
            for place in _PLACES:
                with_headers = place._replace(headers=(*headers, *_HEADERS))
                text = self._call(
                    "headers", partial(self._codec.decode, data), with_headers, str, _shown(data)
                )
                if text is not None and self._json:
                    self._check_json(text)

    def there_and_back(self, text: str, *, must: bool) -> None:
        for place in _PLACES:
            data = self._call("encodes", partial(self._codec.encode, text), place, bytes, repr(text), must)
            if data is None:
                continue
            again = self._call(
                "there and back", partial(self._codec.decode, data), place, str, _shown(data), True
            )
            if again is None:
                continue
            if self._json:
                self._check_json(again)
            back = self._call(
                "there and back", partial(self._codec.encode, again), place, bytes, repr(again), True
            )
            if back is not None and back != data:
                self._notes.add(
                    "there and back",
                    f"{text!r} becomes {_shown(data)}, that {again!r}, and that {_shown(back)}",
                )

    def made_by(self, format: RecordFormat, options: Mapping[str, str]) -> None:
        """What a `RecordMaker` makes: no more than two hundred records, twice."""
        made = [self._made(format, options) for _ in range(2)]
        if made[0] is None or made[1] is None:
            return
        if not made[0]:
            self._notes.add("makes records", "make_records yields nothing")
        if made[0] != made[1]:
            number = next(
                (at for at, (one, other) in enumerate(zip(*made, strict=False)) if one != other), "?"
            )
            self._notes.add(
                "makes records",
                f"with the same seed record {number} is another one the second time: take all that varies from the "
                "argument random, and leave timestamp None",
            )
        for record in made[0]:
            if record.value is not None:
                self._call(
                    "makes records",
                    partial(self._codec.decode, record.value),
                    _PLACES[1],
                    str,
                    _shown(record.value),
                    True,
                )

    def _made(self, format: RecordFormat, options: Mapping[str, str]) -> list[Record] | None:
        make: Any = cast("Any", format).make_records
        made: list[Record] = []
        try:
            for record in islice(make(_PLACES[1].topic, options, Random("of the check")), _MADE):
                wrong = why_not_sent(record)
                if wrong is not None:
                    self._notes.add("makes records", wrong)
                    return None
                made.append(record)
        except KeyboardInterrupt:
            raise
        except FormatError as error:
            # Without its options it may well be right to: what it asks is not there.
            if options or made or len(str(error).splitlines()) != 1:
                self._notes.add("makes records", f"make_records raised {told(error)}")
            return None
        except BaseException as error:
            self._notes.add("makes records", f"make_records raised {told(error)}")
            return None
        return made

    def _call(
        self,
        check: str,
        call: Callable[[Place], T],
        place: Place,
        kind: type[T],
        what: str,
        must: bool = False,
    ) -> T | None:
        """What it returned; None if it may and does refuse."""
        try:
            result: object = call(place)
        except FormatError as error:
            if must:
                self._notes.add(check, f"it refuses {what}: {told(error)}")
            elif len(str(error).splitlines()) != 1:
                self._notes.add(
                    check, f"the FormatError for {what} says {str(error)!r}: it is one line for the person"
                )
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._notes.add(
                check, f"it raised {told(error)} for {what}: raise FormatError for what is not of the format"
            )
            return None
        if not isinstance(result, kind):
            self._notes.add(check, f"it made {kind_of(result)} of {what}, not {kind.__name__}")
            return None
        return result

    def _check_json(self, text: str) -> None:
        try:
            json.loads(text, parse_int=str)  # Python refuses long numbers, which are JSON all the same
        except RecursionError:
            pass  # too deep for the parser, which says nothing of the text
        except ValueError:
            self._notes.add("json", f"json_text is True, and {text[:60]!r} is no JSON")
        else:
            if len(text.splitlines()) > 1:
                self._notes.add("json", f"json_text is True, and {text[:60]!r} has several lines")


def _shown(data: bytes) -> str:
    return repr(data) if len(data) <= 40 else f"{data[:40]!r}..."
