"""Functions as a user writes them."""

from __future__ import annotations

from typing import Any


def with_more(frame: Any, more: int = 1) -> Any:
    from pyspark.sql import functions as f

    return frame.withColumn("more", f.col("id") + f.lit(more))


def no_frame(frame: Any) -> str:
    return "no"


def spread(row: dict[str, Any], times: int = 1) -> Any:
    """As many rows as the number is; none for 0."""
    if row["text"] == "x":
        raise ValueError("an x\nis no number")
    if row["text"] is None:
        return None
    return [{"id": row["id"], "part": part} for part in range(row["id"] * times)]


def wrong_type(row: dict[str, Any]) -> Any:
    return {"id": "no number", "part": 1} if row["id"] == 2 else {"id": row["id"], "part": 0}


def year(row: dict[str, Any]) -> Any:
    return {"year": row["at"].year}
