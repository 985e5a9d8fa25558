"""Topics on Apache Spark: a data source for batches and streams, and a sink that writes each record once.

This module is imported at every start of a broker: it says what there is, and imports nothing heavy. Nothing of the
plugin runs in the broker.

    `codec`     record batches to and from Arrow
    `options`   what an option is, and the errors of wrong ones
    `source`    which partitions, which offsets, and their records as rows: without Spark
    `sink`      rows to partitions, within one transaction a batch
    `spark`     both as Spark knows them: `format("leafcuttr")` and `TopicSink`

The top-level module `pyspark_leafcuttr` is where Spark finds the data source by itself.
"""

from typing import Final

from leafcuttr_sdk.plugin import Plugin

PLUGIN: Final = Plugin(
    name="spark",
    api_version=1,
    # No part of it runs in a broker, so a broker without the packages of its extra lacks nothing.
    summary="Topics on Apache Spark, read and written exactly once: programs of Spark need `leafcuttr[spark]`",
)
