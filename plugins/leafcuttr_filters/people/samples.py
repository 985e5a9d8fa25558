"""Records of a file for `leafcuttr filters test`: a value on each line, or a record in JSON as `consume --json` prints
it."""

import base64
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, cast

from leafcuttr_sdk.records import Headers, Record


def records_of(data: bytes, *, whole: bool, key_separator: str | None) -> Iterator[Record]:
    """Raises ValueError, one line, for a line that is no record."""
    now = int(time.time() * 1000)
    for number, line in enumerate(data.split(b"\n"), 1):
        line = line.removesuffix(b"\r")
        if not line:
            continue
        if whole:
            try:
                yield _of_json(json.loads(line), now)
            except (ValueError, TypeError, RecursionError) as error:
                raise ValueError(f"line {number}: {error}") from None
        elif key_separator is None:
            yield Record(line, timestamp=now)
        else:
            key, found, value = line.partition(key_separator.encode())
            yield Record(value, key, timestamp=now) if found else Record(line, timestamp=now)


def _of_json(found: Any, now: int) -> Record:
    """Raises ValueError, TypeError."""
    if not isinstance(found, dict):
        raise TypeError("it is no JSON object")
    record = cast("dict[str, Any]", found)
    headers = record.get("headers") or []
    if isinstance(headers, dict):
        headers = [{"name": name, "value": value} for name, value in cast("dict[str, Any]", headers).items()]
    timestamp = record.get("timestamp")
    return Record(
        _part(record, "value"),
        _part(record, "key"),
        _headers(cast("list[Any]", headers)),
        timestamp if isinstance(timestamp, int) else now,
    )


def _headers(given: list[Any]) -> Headers:
    pairs: list[tuple[str, bytes | None]] = []
    for one in given:
        if not isinstance(one, dict) or "name" not in one:
            raise TypeError("a header is an object with name and value")
        header = cast("dict[str, Any]", one)
        pairs.append((str(header["name"]), _part(header, "value")))
    return tuple(pairs)


def _part(record: Mapping[str, Any], name: str) -> bytes | None:
    """A text is its bytes; anything else stands for its JSON."""
    if f"{name}_base64" in record:
        return base64.b64decode(str(record[f"{name}_base64"]), validate=True)
    value = record.get(name)
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="surrogateescape")
