# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false
"""Reading the state of a step out of the checkpoint, as Kafka Streams' interactive queries do, also while the pipeline
runs: it is the state after the last batch that was committed.

Spark numbers its operators. Which one belongs to a step is seen by names: the variable of a state processor has the
name of the step, and columns of Spark's own operators begin with it (`state_name`).
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_spark.pipelines.errors import PipelineError, PipelineRefusedError
from leafcuttr_spark.pipelines.model import Pipeline
from leafcuttr_spark.pipelines.operations import Lookup
from leafcuttr_spark.state.keys import is_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY: Final = "_lc_key_"
"""What the columns of the key of a lookup begin with."""
_JOIN: Final = "symmetricHashJoin"
Found = dict[str, Any]


class UnknownKeyError(PipelineRefusedError):
    """The key of a step has no column of this name."""


def state_name(step: str, name: str) -> str:
    """What a column is called in the state of a step."""
    return f"{step}.{name}"


def check_store(pipeline: Pipeline, what: str) -> None:
    """Raises PipelineError where the pipeline's store cannot keep what a state processor has."""
    if pipeline.state_store != "rocksdb":
        raise PipelineRefusedError(f"{what} keeps its state in RocksDB alone: state: {{store: rocksdb}}")


def read_state(
    spark: "SparkSession",
    checkpoint: str,
    step: str,
    key: Mapping[str, str] | None = None,
    limit: int = 1000,
    operation: Any = None,
) -> list[Found]:
    """What the step keeps: `{"key": {...}, "value": {...}}` for each key, at most `limit`; with `key` for those that
    have these values, as text (`is_value`), in these columns. The value of an aggregate has Spark's buffers (`sum`,
    `count`); rows of a join say on which `side` they wait. Raises PipelineError where the checkpoint has no state of
    such a step, and UnknownKeyError where its key has no such column. `operation` is that of the step.
    """
    wanted = key or {}
    found: list[Found] = []
    parts = list(_stores(spark, checkpoint, step))
    if not parts:
        raise PipelineError(f"{checkpoint} has no state of a step {step}")
    columns = dict.fromkeys(name for _, frame in parts for name in _key_columns(frame, step, operation))
    for name in wanted:
        if name not in columns:
            raise UnknownKeyError(
                f"the key of {step} has no column {name}; it has {', '.join(columns) or 'none'}"
            )
    for more, frame in parts:
        for row in frame.toLocalIterator():
            each = {**more, **_named(row, step, operation)}
            if all(is_value(each["key"].get(name), text) for name, text in wanted.items()):
                found.append(each)
            if len(found) == limit:
                return found
    return found


def _stores(spark: "SparkSession", checkpoint: str, step: str) -> "Iterator[tuple[Found, DataFrame]]":
    rows = spark.read.format("state-metadata").load(checkpoint).collect()
    operators = list({row["operatorId"]: row for row in rows}.values())
    # Behind a state processor an aggregate may have the name of its step too, which keeps nothing beside it.
    own = [each for each in operators if step in (_variables(each["operatorProperties"]) or ())]
    for operator in own or operators:
        reader = spark.read.format("statestore").option("operatorId", operator["operatorId"])
        variables = _variables(operator["operatorProperties"])
        if variables is not None:
            if step in variables:
                yield {}, reader.option("stateVarName", step).load(checkpoint)
        elif operator["operatorName"] == _JOIN:
            for side in ("left", "right"):
                frame = reader.option("joinSide", side).load(checkpoint)
                if _is_of(frame, step):
                    yield {"side": side}, frame
        elif _is_of(frame := reader.load(checkpoint), step):
            yield {}, frame


def _variables(properties: str | None) -> set[str] | None:
    """Of a state processor; None for another operator."""
    if not properties:
        return None
    return {each["stateName"] for each in json.loads(properties).get("stateVariables", ())}


def _key_columns(frame: "DataFrame", step: str, operation: Any) -> list[str]:
    names: list[str] = getattr(frame.schema["key"].dataType, "names", [])
    return [_key_name(name.removeprefix(state_name(step, "")), operation) for name in names]


def _key_name(name: str, operation: Any) -> str:
    """The columns of the key of a lookup have numbers, as both sides may have other names for them."""
    if isinstance(operation, Lookup) and name.startswith(KEY):
        return list(operation.on)[int(name.removeprefix(KEY))]
    return name


def _is_of(frame: "DataFrame", step: str) -> bool:
    key, value = (frame.schema[part].dataType for part in ("key", "value"))
    names: list[str] = [*getattr(key, "names", ()), *getattr(value, "names", ())]
    return any(name.startswith(state_name(step, "")) for name in names)


def _named(row: Any, step: str, operation: Any) -> Found:
    prefix = state_name(step, "")

    def plain(struct: Any) -> Found:
        given = struct.asDict(recursive=True) if struct is not None else {}
        return {name.removeprefix(prefix): value for name, value in given.items()}

    key = {_key_name(name, operation): value for name, value in plain(row["key"]).items()}
    return {"key": key, "value": plain(row["value"])}
