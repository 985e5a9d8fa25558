"""Topics on Apache Spark: a data source for batches and streams, a sink that writes each record once, and pipelines.

This module is imported at every start of a broker: it says what there is, and imports nothing heavy. Spark itself never
runs in the broker.

    `codec`      record batches to and from Arrow
    `options`    what an option is, and the errors of wrong ones
    `source`     which partitions, which offsets, and their records as rows: without Spark
    `sink`       rows to partitions, within one transaction a batch
    `spark`      both as Spark knows them: `format("leafcuttr")` and `TopicSink`
    `operating`  what operators see of a pipeline and do with it
    `service`    pipelines that a broker runs, each in a process of its own

The top-level module `pyspark_leafcuttr` is where Spark finds the data source by itself.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.plugin import Plugin

if TYPE_CHECKING:
    from leafcuttr_sdk.admin import AdminRoute, HealthCheck
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.metrics import MetricReading
    from leafcuttr_sdk.services import Service, ServiceSpec
    from leafcuttr_sdk.settings import Setting

PLUGIN: Final = Plugin(
    name="spark",
    api_version=1,
    api_minor=2,
    # A broker needs no package of its extra: what runs pipelines may be an environment of its own.
    summary="Topics on Apache Spark, read and written exactly once: programs of Spark need `leafcuttr[spark]`",
    enabled_by="lc.spark.pipelines",
)


def leafcuttr_register_settings() -> "Iterable[Setting]":
    from leafcuttr_spark.service.settings import settings

    return settings()


def leafcuttr_register_services() -> "Iterable[ServiceSpec]":
    from leafcuttr_sdk.services import ServiceSpec

    return [ServiceSpec("spark", _make)]


def leafcuttr_register_health_checks(broker: "Broker") -> "Iterable[HealthCheck]":
    from leafcuttr_spark.service.people import health_checks

    return health_checks(broker)


def leafcuttr_register_metrics(broker: "Broker") -> "Iterable[MetricReading]":
    from leafcuttr_spark.service.people import pipeline_readings
    from leafcuttr_spark.service.reports import running_of

    return pipeline_readings(running_of(broker))


def leafcuttr_register_admin_routes(broker: "Broker") -> "Iterable[AdminRoute]":
    from leafcuttr_spark.service.people import routes

    return routes(broker)


def _make(broker: "Broker") -> "Service":
    from leafcuttr_spark.service.pipelines import PipelinesService

    return PipelinesService(broker)
