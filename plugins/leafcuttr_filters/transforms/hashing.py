"""`hash`: fields by a hash in hex, of the text that a field is; with a salt by an HMAC (RFC 2104)."""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from pathlib import Path as File
from typing import Any

from leafcuttr_filters.documents.fields import Path, update
from leafcuttr_filters.documents.parts import changer, may_hold
from leafcuttr_filters.making import Judge
from leafcuttr_filters.transforms.fields import members_of
from leafcuttr_filters.transforms.texts import text_of
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.filters import TopicContext
from leafcuttr_sdk.records import Record


def make_hash(context: TopicContext, values: Mapping[str, Any]) -> Judge:
    """Raises PluginError."""
    digest = _digest(values["algorithm"], _salt(values))
    fields: tuple[Path, ...] = values["fields"]

    def change(value: Any) -> Any:
        return None if value is None else digest(text_of(value).encode(errors="surrogatepass"))

    def hashed(document: Any, _: Record) -> Any:
        members_of(document)
        for path in fields:
            document = update(document, path, change)
        return document

    return changer(context, values, hashed, hides=may_hold(fields))


def _salt(values: Mapping[str, Any]) -> bytes | None:
    file: str | None = values["salt.file"]
    if file is None:
        salt: str | None = values["salt"]
        return None if salt is None else salt.encode(errors="surrogateescape")
    try:
        return File(file).read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise PluginError(f"salt.file={file}: {error.strerror}") from None


def _digest(algorithm: str, salt: bytes | None) -> Callable[[bytes], str]:
    if salt is not None:
        key = salt
        return lambda data: hmac.digest(key, data, algorithm).hex()
    function = getattr(hashlib, algorithm)
    return lambda data: str(function(data).hexdigest())
