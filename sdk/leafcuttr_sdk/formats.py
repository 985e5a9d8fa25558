"""Record formats: how `produce`, `consume` and `dump` turn the bytes of keys and values into text, and back.

A format is what `--format NAME` names. It is opened once for a command with the options that the user gave
(`--format-option NAME=VALUE`), which makes a codec; the codec then sees every key or value in turn. What costs time (a
connection, a parser, a heavy import) belongs into `open`, so that a format costs nothing until it is named.

Text is `str`. A codec that keeps bytes which are no UTF-8 carries them as lone surrogates (PEP 383), as `text` does;
the commands write them out as the bytes that they were. A codec whose texts are JSON documents says so by `json_text`:
then `consume --json` puts them into its objects as they are, and `produce --json` hands over the JSON of the member.

A codec whose bytes do not say all by themselves can ask for the headers of the record (`HeadersCodec`).

A format may make records itself (`RecordMaker`), which `leafcuttr perf produce --format NAME` sends.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from leafcuttr_sdk._described import described

if TYPE_CHECKING:
    from random import Random

    from leafcuttr_sdk.records import Record


class FormatError(ValueError):
    """Text or bytes that are not of the format, or an option that it cannot use.

    The message is one line for the person at the terminal: what was wrong, where in it, what is allowed. The command
    puts before it which record and which part of it.
    """


@described
class Place(NamedTuple):
    """What is converted: the key or the value of a record of this topic."""

    topic: str
    part: Literal["key", "value"]
    headers: "Sequence[tuple[str, bytes | None]]" = ()
    """The headers of the record, in their order, names repeated as there. Only `decode` of a `HeadersCodec` gets
    them; for every other call it is empty."""


class FormatCodec(Protocol):
    """A format that has been opened. It is used by one thread. A null key or value never reaches it."""

    @property
    def json_text(self) -> bool:
        """Whether every text is one JSON document (RFC 8259), on one line."""
        ...

    def encode(self, text: str, place: Place) -> bytes:
        """The bytes to store. Raises FormatError for text that is not of the format."""
        ...

    def decode(self, data: bytes, place: Place) -> str:
        """The bytes as text. Raises FormatError for bytes that are not of the format."""
        ...

    def close(self) -> None:
        """Release what `open` has acquired. Called once, also after an error."""
        ...


class HeadersCodec(FormatCodec, Protocol):
    """A codec that decodes by the headers of the record too, as one of schemas whose ids are in a header.

    `decode` has to do with a `Place` without headers too: then the record has none.
    """

    @property
    def needs_headers(self) -> bool:
        """Whether `decode` gets the headers, in `Place.headers`. It is asked once, when the codec is opened; a codec
        without this property does not get them, and its records are read quicker."""
        ...


class RecordFormat(Protocol):
    """A format by its name."""

    @property
    def name(self) -> str:
        """What `--format` calls it: lower case letters, digits, `-` and `_`, beginning with a letter."""
        ...

    @property
    def summary(self) -> str:
        """A few words for the list of formats."""
        ...

    @property
    def options(self) -> Mapping[str, str]:
        """The options that `open` knows: name and a few words on each."""
        ...

    def open(self, options: Mapping[str, str]) -> FormatCodec:
        """A codec. It gets only options that `options` names. Raises FormatError for a value that it cannot use."""
        ...


class RecordMaker(RecordFormat, Protocol):
    """A format that makes records too: what a service of its kind would send, for measuring and for trying out.

    `leafcuttr perf produce --format NAME` makes them before its clock starts, as many as it has been told to (4,096, or
    16 MiB, by default), and sends them in turn, again and again. So it need not be quick.
    """

    def make_records(self, topic: str, options: Mapping[str, str], random: "Random") -> "Iterator[Record]":
        """Records for this topic, without an end if it likes; one that ends has its records sent again.

        A value is what its own codec, opened with the same options, decodes; a key is any bytes. All that varies comes
        from `random`, which has been seeded, so that a run can be repeated: the time of the day is left to the client
        (`timestamp=None`). It gets only options that `options` names. Raises FormatError for a value that it cannot
        use, and where what it has to ask does not answer.
        """
        ...
