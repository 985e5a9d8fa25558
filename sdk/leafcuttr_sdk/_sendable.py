"""Whether a record that a plugin has made can be sent: its types, and what Kafka's format holds."""

from typing import Any, cast

from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.records import Record


def why_not_sent(made: object) -> str | None:
    """What is wrong with a `Record`, in one line; None if it can be sent."""
    if not isinstance(made, Record):
        return f"it made {kind_of(made)}, not a Record"
    value, key, headers, timestamp = cast("tuple[Any, Any, Any, Any]", made)
    for name, data in (("key", key), ("value", value)):
        if data is not None and not isinstance(data, bytes):
            return f"the {name} of a record is {kind_of(data)}, neither bytes nor None"
    if not isinstance(headers, tuple | list):
        return f"the headers of a record are {kind_of(headers)}, not a tuple of names and values"
    for header in cast("tuple[Any, ...]", headers):
        if not _is_header(header):
            return f"a header of a record is {header!r:.100}: a name, and bytes or None"
    if timestamp is not None and not (type(timestamp) is int and 0 <= timestamp < 2**63):
        return f"the timestamp of a record is {timestamp!r:.40}: milliseconds since 1970, or None"
    return None


def _is_header(header: object) -> bool:
    if not isinstance(header, tuple | list):
        return False
    pair = cast("tuple[Any, ...]", header)
    if len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], bytes | None):
        return False
    try:
        pair[0].encode()
    except UnicodeEncodeError:
        return False
    return True
