"""The page of the options of source and sink, made of the tables of the code:
`python -m leafcuttr_spark.reference_page > docs/reference/spark.md`. A test compares the committed page with it. It
needs numpy and pyarrow.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import Final

from leafcuttr_spark.formats.decoding import plan_format
from leafcuttr_spark.formats.options import FormatOptions
from leafcuttr_spark.formats.types import ddl
from leafcuttr_spark.options import Option, Query
from leafcuttr_spark.sink.options import OPTIONS as SINK
from leafcuttr_spark.source.options import ALL_COLUMNS
from leafcuttr_spark.source.options import OPTIONS as SOURCE
from leafcuttr_spark.source.rows import RowPlan

_HEAD: Final = """\
# Topics on Spark: options

What `format("leafcuttr")` and `TopicSink` take; [Read and write topics with Spark](../how-to/spark.md) shows how they
are used. Names may be written in any case. An option that is unknown, or whose value is not allowed, is refused with
one line before anything is read or written.

This page is made of the tables that the code reads options by (`python -m leafcuttr_spark.reference_page`).

## Source

The names are those of Spark's own Kafka connector. Its options that have no meaning here are accepted.

"""
_COLUMNS: Final = """
### Columns

`key` and `value` have the type that their format and schema say; null stays null. `error` has one line for a record
whose key or value cannot be decoded, which is null then; without this column the first such record fails the query.
`keyBytes` and `valueBytes` are the bytes as they came. These three and `headers` are there if `columns` names them,
`headers` with `includeHeaders` too. `timestampType` is 0 for the producer's time, 1 for the broker's. Times of records
that Spark cannot hold are its first and its last.

"""
_OFFSETS: Final = """
### In the checkpoint

A stream's offsets are kept as JSON. `offsets` has the form of Spark's connector, and can be given as `startingOffsets`;
`topics` are the ids of the topics, by which one that was deleted and created anew is recognised.

```json
{"version": 1, "offsets": {"orders": {"0": 42, "1": 17}}, "topics": {"orders": "4sN2mYp4R3uXo0eT7fQkBA"}}
```
"""
_SINK: Final = """
## Sink

"""
_ROWS: Final = """
### Rows

| Column | Type | |
|---|---|---|
| `value` | binary or string | Has to be there. Null is a tombstone. |
| `key` | binary or string | |
| `topic` | string | Where the option `topic` is not given. |
| `partition` | int | Null: the key decides, as by Java's partitioner; without one, all in turn. |
| `headers` | array of structs of key and value | Written with `includeHeaders`. |
| `timestamp` | timestamp | Written with `includeTimestamps`. Null: when it is written. |
"""
_QUERIES: Final = {Query.BOTH: "both", Query.BATCH: "batch", Query.STREAM: "stream"}


def page() -> str:
    """The whole page."""
    return "".join(
        (
            _HEAD,
            *_table(SOURCE, with_query=True),
            _COLUMNS,
            *_columns(),
            _OFFSETS,
            _SINK,
            *_table(SINK, with_query=False),
            _ROWS,
        )
    )


def _table(options: Iterable[Option], *, with_query: bool) -> Iterator[str]:
    names = ["Option", "Value", "Default", *(["For"] if with_query else []), "What it does"]
    yield f"| {' | '.join(names)} |\n|{'---|' * len(names)}\n"
    for option in options:
        what = f"*No meaning here.* {option.what}" if option.ignored else option.what
        query = [_QUERIES[option.query]] if with_query else []
        cells = [f"`{option.name}`", option.value, option.default, *query, what]
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _columns() -> Iterator[str]:
    yield "| Column | Type |\n|---|---|\n"
    bytes_ = FormatOptions()
    for field in RowPlan(
        ALL_COLUMNS, plan_format(bytes_, "key", ()), plan_format(bytes_, "value", ())
    ).schema:
        yield f"| `{field.name}` | `{ddl(field.type)}` |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
