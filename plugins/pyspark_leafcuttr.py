"""Where Spark finds `format("leafcuttr")`: it imports each top-level module whose name begins with `pyspark_`, and
registers the class that has this name there."""

from leafcuttr_spark.spark.datasource import TopicSource as DefaultSource

__all__ = ["DefaultSource"]
