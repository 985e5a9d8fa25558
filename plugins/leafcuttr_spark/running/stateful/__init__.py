"""Steps with state: a function for each operation, `(operation, frames, context) -> DataFrame`.

`event_time`   TIME, the watermark, and how far behind it rows may be
`late`         rows that come behind the watermark
`modes`        the output mode of the query
`aggregates`   count, aggregate, reduce; windows. `collecting` has those that Spark does not have
`deduplicate`
`joins`        stream with stream
`lookups`      stream with table; `tables`: table with table; `everywhere`: global tables
`processing`   state of the user's own
`stores`       reading state
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from leafcuttr_spark.pipelines.operations import Aggregate, Count, Deduplicate, Join, Lookup, Process, Reduce
from leafcuttr_spark.running.stateful.aggregates import aggregate, count, reduce
from leafcuttr_spark.running.stateful.deduplicate import deduplicate
from leafcuttr_spark.running.stateful.joins import join
from leafcuttr_spark.running.stateful.lookups import lookup
from leafcuttr_spark.running.stateful.processing import process

COMPILERS: Final[Mapping[type[Any], Callable[..., Any]]] = {
    Aggregate: aggregate,
    Count: count,
    Reduce: reduce,
    Deduplicate: deduplicate,
    Join: join,
    Lookup: lookup,
    Process: process,
}
