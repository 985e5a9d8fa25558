"""JSON in UTF-8 to Python's values and back.

Filters of a chain see the same bytes one behind the other, so documents are kept for a while by their bytes: each is
decoded once, and what one filter has written the next one need not read. They are kept for each thread, as a chain runs
in one. Nobody changes a document. To keep one costs more than to decode it, so where nobody comes for those that are
kept, only some are, until somebody does.

What JSON (RFC 8259) has not is refused: NaN and Infinity, bytes that are no UTF-8; a number that a double cannot hold
is refused where it would be written. Of members of one name the last counts. Halves of surrogate pairs pass as the
escapes that they came as.
"""

import json
import threading
from collections.abc import Callable
from typing import Any, Final, NoReturn

MOST_BYTES: Final = 512 * 1024
"""Of all documents that a thread keeps."""
_LARGEST: Final = 64 * 1024
SKIP: Final = 30
_MOST: Final = 4096


class CannotFilterError(ValueError):
    """A filter cannot handle a record. The text is one line, without what the record holds."""


class _Kept(threading.local):
    def __init__(self) -> None:
        self.documents: dict[int, tuple[bytes, Any]] = {}
        self.bytes = 0
        self.found = False
        """Whether one of these was wanted again."""
        self.skip = 0
        """How many are not kept between two that are."""
        self.skipped = 0


_kept: Final = _Kept()
_NONE: Final = object()
"""In the place of a document of what is no JSON."""


def _no_constant(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are no JSON")


_decoder: Final = json.JSONDecoder(parse_constant=_no_constant)
_scan: Final[Callable[[str, int], tuple[Any, int]]] = vars(_decoder)["scan_once"]


def _decode(text: str) -> Any:
    """Raises ValueError. What has no space around it, as programs write it, takes the short way."""
    try:
        document, end = _scan(text, 0)
    except StopIteration:
        return _decoder.decode(text)
    return document if end == len(text) else _decoder.decode(text)


def _encoding() -> Callable[[Any], str]:
    """What `json.JSONEncoder.encode` makes anew for each value, and then calls, made once."""
    encoder = json.JSONEncoder(
        ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
    )
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # another Python
        return encoder.encode
    string: Any = json.encoder.encode_basestring
    parts = make(None, encoder.default, string, None, ":", ",", False, False, False)
    return lambda document: "".join(parts(document, 0))


_encode: Final = _encoding()
_encode_ascii: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def decoded(data: bytes) -> Any:
    """Raises CannotFilterError."""
    kept = _kept
    found = kept.documents.get(
        id(data)
    )  # the bytes live as long as they are kept, so no others have their id
    if found is not None:
        document = found[1]
        kept.found = True
        kept.skip = 0
    else:
        try:
            document = _decode(data.decode())
        except (ValueError, RecursionError):
            document = _NONE
        keep(data, document)
    if document is _NONE:
        raise CannotFilterError("it is no JSON")
    return document


def encoded(document: Any) -> bytes:
    """The bytes, which `decoded` knows from now on. Raises CannotFilterError."""
    try:
        try:
            data = _encode(document).encode()
        except UnicodeEncodeError:
            data = _encode_ascii(document).encode()
    except (ValueError, TypeError, RecursionError):
        raise CannotFilterError("what becomes of it is no JSON") from None
    keep(data, document)
    return data


def keep(data: bytes, document: Any) -> None:
    """Keep the document of these bytes for the filters behind this one."""
    kept = _kept
    if kept.skipped < kept.skip:
        kept.skipped += 1
        return
    size = len(data)
    if size > _LARGEST:
        return
    kept.skipped = 0
    documents = kept.documents
    if kept.bytes + size > MOST_BYTES or len(documents) >= _MOST:
        documents.clear()
        kept.bytes = 0
        kept.skip = 0 if kept.found else SKIP
        kept.found = False
    documents[id(data)] = (data, document)
    kept.bytes += size
