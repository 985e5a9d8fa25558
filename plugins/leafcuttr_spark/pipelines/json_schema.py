"""The JSON Schema of a pipeline's file, for editors, made of the tables of keys."""

from typing import Any, Final

from leafcuttr_spark.pipelines.reading.kinds import Defs
from leafcuttr_spark.pipelines.reading.pipeline_parts import PIPELINE

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""What yaml-language-server and the JSON editors know best."""


def json_schema() -> dict[str, Any]:
    """The schema. Where a text is allowed a number is too, since YAML does not tell `1.10` from a number."""
    defs: Defs = {}
    full = PIPELINE.full_schema(defs)
    return {"$schema": DIALECT, "title": "A pipeline of LeafCuttr on Spark", **full, "$defs": defs}
