"""Topics on Apache Spark: a data source for batches and streams, a sink that writes each record once, and pipelines.

This module is imported at every start of a broker: it says what there is, and imports nothing heavy. Spark itself never
runs in the broker.

    `codec`      record batches to and from Arrow
    `options`    what an option is, and the errors of wrong ones
    `source`     which partitions, which offsets, and their records as rows: without Spark
    `sink`       rows to partitions, within one transaction a batch
    `spark`      both as Spark knows them: `format("leafcuttr")` and `TopicSink`
    `pipelines`  what a pipeline is, and what is wrong with one: without Spark
    `commands`   `leafcuttr spark`
    `operating`  what operators see of a pipeline and do with it
    `service`    pipelines that a broker runs, each in a process of its own

The top-level module `pyspark_leafcuttr` is where Spark finds the data source by itself. Programs in Python take the
classes of pipelines, and what reads their files, from here; they are imported when they are used first:

    from leafcuttr_spark import load_pipeline
    pipeline = load_pipeline("orders.yaml").pipeline
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_sdk.plugin import Plugin

if TYPE_CHECKING:
    import click

    import leafcuttr_sdk as sdk
    from leafcuttr_spark.pipelines.checking.whole import load_pipeline
    from leafcuttr_spark.pipelines.model import (
        DeadLetters,
        Decoding,
        Encoding,
        FileOrigin,
        FileTarget,
        Pipeline,
        PythonTarget,
        SessionSettings,
        Sink,
        Source,
        Start,
        Step,
        Table,
        TopicOrigin,
        TopicTarget,
        Trigger,
    )
    from leafcuttr_spark.pipelines.operations import (
        Aggregate,
        Apply,
        Branch,
        Cast,
        Count,
        Deduplicate,
        Drop,
        Filter,
        FlatMap,
        HoppingWindow,
        Join,
        Lookup,
        Map,
        Process,
        PythonFunction,
        Reduce,
        Rename,
        Select,
        SessionWindow,
        SlidingWindow,
        Sql,
        Transform,
        TumblingWindow,
        Union,
    )

__all__ = [
    "Aggregate",
    "Apply",
    "Branch",
    "Cast",
    "Count",
    "DeadLetters",
    "Decoding",
    "Deduplicate",
    "Drop",
    "Encoding",
    "FileOrigin",
    "FileTarget",
    "Filter",
    "FlatMap",
    "HoppingWindow",
    "Join",
    "Lookup",
    "Map",
    "Pipeline",
    "Process",
    "PythonFunction",
    "PythonTarget",
    "Reduce",
    "Rename",
    "Select",
    "SessionSettings",
    "SessionWindow",
    "Sink",
    "SlidingWindow",
    "Source",
    "Sql",
    "Start",
    "Step",
    "Table",
    "TopicOrigin",
    "TopicTarget",
    "Transform",
    "Trigger",
    "TumblingWindow",
    "Union",
    "load_pipeline",
]

_PLACES: Final = {
    "pipelines.checking.whole": "load_pipeline",
    "pipelines.model": (
        "DeadLetters Decoding Encoding FileOrigin FileTarget Pipeline PythonTarget SessionSettings Sink "
        "Source Start Step Table TopicOrigin TopicTarget Trigger"
    ),
    "pipelines.operations": (
        "Aggregate Apply Branch Cast Count Deduplicate Drop Filter FlatMap HoppingWindow Join Lookup Map "
        "Process PythonFunction Reduce Rename Select SessionWindow SlidingWindow Sql Transform "
        "TumblingWindow Union"
    ),
}
_MODULES: Final = {name: module for module, names in _PLACES.items() for name in names.split()}

PLUGIN: Final = Plugin(
    name="spark",
    api_version=1,
    api_minor=2,
    # A broker needs no package of its extra: what runs pipelines may be an environment of its own.
    summary="Topics on Apache Spark, read and written exactly once: programs of Spark need `leafcuttr[spark]`",
    enabled_by="lc.spark.pipelines",
)


def leafcuttr_register_settings() -> "Iterable[sdk.Setting]":
    from leafcuttr_spark.service.settings import settings

    return settings()


def leafcuttr_register_services() -> "Iterable[sdk.ServiceSpec]":
    from leafcuttr_sdk.services import ServiceSpec

    return [ServiceSpec("spark", _make)]


def leafcuttr_register_cli_commands() -> "Iterable[sdk.CliCommand]":
    from leafcuttr_sdk.cli import CliCommand

    return [CliCommand("spark", "write, check and run pipelines on Spark", _spark)]


def leafcuttr_register_health_checks(broker: "sdk.Broker") -> "Iterable[sdk.HealthCheck]":
    from leafcuttr_spark.service.people import health_checks

    return health_checks(broker)


def leafcuttr_register_metrics(broker: "sdk.Broker") -> "Iterable[sdk.MetricReading]":
    from leafcuttr_spark.service.people import pipeline_readings
    from leafcuttr_spark.service.reports import running_of

    return pipeline_readings(running_of(broker))


def leafcuttr_register_admin_routes(broker: "sdk.Broker") -> "Iterable[sdk.AdminRoute]":
    from leafcuttr_spark.service.people import routes

    return routes(broker)


def _make(broker: "sdk.Broker") -> "sdk.Service":
    from leafcuttr_spark.service.pipelines import PipelinesService

    return PipelinesService(broker)


def _spark() -> "click.Command":
    from leafcuttr_spark.commands import spark

    return spark


def __getattr__(name: str) -> Any:
    import importlib

    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
