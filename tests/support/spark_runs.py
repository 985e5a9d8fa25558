"""A pipeline's file, and what a run of it says of itself, for tests that need one of each."""

from __future__ import annotations

from typing import Final

from leafcuttr_spark.operating.status import RunState, RunStatus

TEXT: Final = """
pipeline: orders
cluster: {bootstrap.servers: "127.0.0.1:1"}
checkpoint: ./checkpoint
sources:
  orders: {topic: orders, key: none, value: text}
sinks:
  out: {from: orders, topic: out, value: {format: text, columns: [value]}}
"""
STATUS: Final = RunStatus(
    pipeline="orders",
    file="/orders.yaml",
    checkpoint="/checkpoint",
    run="a",
    pid=7,
    host="here",
    state=RunState.RUNNING,
    began_ms=0,
    written_ms=0,
)
"""Before its first batch."""
