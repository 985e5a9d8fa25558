"""The modules whose functions and classes go to tasks of Spark as pickles, which name them by their modules: executors
import them, where only the extra `spark-worker` is installed, and Spark itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

PLUGIN: Final = "leafcuttr_spark"
DRIVER_ONLY: Final = (
    "commands",
    "operating",
    "pipelines",
    "reference_page",
    "running.run",
    "service",
    "testing",
)
"""Parts of the plugin that no task names."""
NOT_THERE: Final = ("click", "confluent_kafka", "pluggy", "prometheus_client", "rich", "sqlglot", "yaml")
"""What executors have not, and commands or brokers have."""
_SENDING: Final = frozenset({"arrow_udf", "mapInArrow", "pandas_udf", "transformWithState", "udf"})
_SENT: Final = ("DataSource", "InputPartition", "StatefulProcessor", "WriterCommitMessage")
"""Starts of the names of Spark's classes whose descendants are pickled."""


def of_tasks(known: Mapping[str, Path]) -> list[str]:
    """The modules of the plugin that tasks may name."""
    driver_only = {f"{PLUGIN}.{part}" for part in DRIVER_ONLY}
    return sorted(
        name
        for name in known
        if name.startswith(f"{PLUGIN}.")
        and not any(name == part or name.startswith(f"{part}.") for part in driver_only)
    )


def sends(tree: ast.AST) -> Iterator[int]:
    """The lines of a module that give Spark a function or a class for its tasks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _SENDING:
            yield node.lineno
        elif isinstance(node, ast.ClassDef):
            bases = (ast.unparse(base).rpartition(".")[2] for base in node.bases)
            yield from (node.lineno for base in bases if base.startswith(_SENT))
