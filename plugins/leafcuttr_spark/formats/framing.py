# pyarrow makes the functions of its module `compute` when it is imported.
# pyright: reportAttributeAccessIssue=false
"""The ids in front of many values, or in their headers: values by their schemas. See `leafcuttr_sdk.schema_framing` for
the bytes."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from leafcuttr_sdk.schema_framing import GUID_SIZE, ID_SIZE, MAGIC_GUID, MAGIC_ID, read_prefix
from leafcuttr_sdk.schemas import DataError
from leafcuttr_spark.codec.slices import edges_of
from leafcuttr_spark.codec.varints import Longs
from leafcuttr_spark.formats.options import IdPlace

_NO_GUID: Final = b""


class Framed(NamedTuple):
    """Some rows of one schema."""

    schema: int | UUID
    rows: Longs
    skip: int
    """Bytes of the prefix in each payload."""
    path: bytes = _NO_GUID
    """The path to a message of Protobuf, where it is in the header too."""


class Frames(NamedTuple):
    """All rows that are not null, and of which no id can be read: those are in `errors`."""

    groups: list[Framed]
    errors: dict[int, str]


def frames_of(values: pa.Array, headers: pa.Array | None, place: IdPlace, header: str) -> Frames:
    """By the ids of each value. `headers` are lists of structs of key and value; `header` is the name of the one that
    has an id."""
    errors: dict[int, str] = {}
    groups: list[Framed] = []
    left = np.flatnonzero(~np.asarray(values.is_null())) if values.null_count else np.arange(len(values))
    if place in (IdPlace.ANY, IdPlace.HEADER):
        found = _in_headers(headers, header)
        is_wanted = values.is_valid()
        by_prefix: dict[bytes, list[int]] = {}
        for row, prefix in found:
            if is_wanted[row].as_py():
                by_prefix.setdefault(prefix, []).append(row)
        if found:
            left = np.setdiff1d(left, np.array([row for row, _ in found]), assume_unique=True)
        for prefix, rows in by_prefix.items():
            try:
                read = read_prefix(prefix)
            except DataError as error:
                errors |= dict.fromkeys(rows, f"the header {header}: {error}")
                continue
            groups.append(Framed(read.schema, np.array(rows), 0, prefix[read.end :]))
        if place is IdPlace.HEADER:
            errors |= dict.fromkeys(
                left.tolist(), f"it has no header {header}, where its schema's id is expected"
            )
            return Frames(groups, errors)
    groups += _in_payloads(values, left, errors)
    return Frames(groups, errors)


def _in_headers(headers: pa.Array | None, name: str) -> list[tuple[int, bytes]]:
    """Rows that have such a header, each once, and its value."""
    if headers is None or headers.null_count == len(headers):
        return []
    structs = headers.flatten()
    keys, values = structs.flatten()
    places = np.flatnonzero(np.asarray(pc.fill_null(pc.equal(keys, name), False)))
    if not len(places):
        return []
    rows = np.asarray(pc.list_parent_indices(headers))[places]
    # A record has the last one of its headers of a name.
    return list(
        dict(zip(rows.tolist(), (values[place].as_py() or b"" for place in places), strict=True)).items()
    )


def _in_payloads(values: pa.Array, rows: Longs, errors: dict[int, str]) -> Iterator[Framed]:
    """Adds to the errors those of values that have no prefix."""
    if not len(rows):
        return
    edges, buffer = edges_of(values)
    octets = np.frombuffer(buffer, np.uint8)
    begins, sizes = edges[rows], edges[rows + 1] - edges[rows]
    magic = np.full(len(rows), -1)
    some = sizes > 0
    magic[some] = octets[begins[some]]
    with_id = (magic == MAGIC_ID) & (sizes >= ID_SIZE)
    with_guid = (magic == MAGIC_GUID) & (sizes >= GUID_SIZE)
    for row in rows[~(with_id | with_guid)].tolist():
        try:
            read_prefix(values[row].as_py())
        except DataError as error:
            errors[row] = str(error)
    if with_id.any():
        at = begins[with_id] + 1
        ids = np.zeros(len(at), np.int64)
        for byte in range(4):
            ids = ids << 8 | octets[at + byte]
        ids = ids.astype(np.uint32).astype(np.int32)
        yield from _grouped(ids, rows[with_id])
    by_guid: dict[bytes, list[int]] = {}
    for row in rows[with_guid].tolist():
        by_guid.setdefault(values[row].as_py()[1:GUID_SIZE], []).append(row)
    for guid, some_rows in by_guid.items():
        yield Framed(UUID(bytes=guid), np.array(some_rows), GUID_SIZE)


def _grouped(ids: Any, rows: Longs) -> Iterator[Framed]:
    if (ids == ids[0]).all():
        yield Framed(int(ids[0]), rows, ID_SIZE)
        return
    order = np.argsort(ids, kind="stable")
    cuts = np.flatnonzero(np.diff(ids[order])) + 1
    for part in np.split(order, cuts):
        yield Framed(int(ids[part[0]]), rows[part], ID_SIZE)
