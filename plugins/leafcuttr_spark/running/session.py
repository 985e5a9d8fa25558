# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""The session of Spark that a pipeline runs in: local, of a cluster, or of a server of Spark Connect."""

import os
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_spark.lines import one_line, shortened
from leafcuttr_spark.operating.java import java_trouble
from leafcuttr_spark.pipelines.errors import PipelineError, PipelineRefusedError
from leafcuttr_spark.pipelines.model import Pipeline
from leafcuttr_spark.running.launching import Launch
from leafcuttr_spark.running.workers import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # A second copy of a task would spoil the transaction.
    "spark.speculation": "false",
    "spark.log.level": "ERROR",
}
"""What a pipeline's `session.config` may change."""
_LOCAL: Final = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?$")
_STOPPED: Final = "Cannot call methods on a stopped SparkContext"
_ANSWERS_S: Final = 30.0
"""For a server of Spark Connect, before the first request. PySpark tries again for ten minutes, and says nothing."""
_RETRIES: Final = 15
_LONGEST_PAUSE_MS: Final = 5000
"""Of a request to it: a minute in all, as the pauses begin with 50 ms and are four times as long each time."""
_JVM_ENDED: Final = "JAVA_GATEWAY_EXITED"
"""The condition of PySpark: the reason is nowhere but on standard error."""


def session_of(pipeline: Pipeline) -> "SparkSession":
    """Start it, or take the one that this process has already. Raises PipelineError where Spark cannot start."""
    settings = pipeline.session
    if settings.remote is None and (trouble := java_trouble()) is not None:
        raise PipelineRefusedError(trouble, "session")
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise PipelineRefusedError(
            "Spark is not installed: pip install 'leafcuttr[spark]'", "session"
        ) from None
    if "PYSPARK_PYTHON" not in os.environ:
        is_here = settings.remote is None and _LOCAL.match(settings.master or "local") is not None
        os.environ["PYSPARK_PYTHON"] = worker_python() if is_here else sys.executable
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", os.environ["PYSPARK_PYTHON"])
    builder: Any = SparkSession.builder.appName(pipeline.name)
    launch = Launch()
    try:
        if settings.remote is not None:
            _reach(settings.remote)
            found: SparkSession = (
                builder.remote(settings.remote).config(map=dict(settings.config)).getOrCreate()
            )
            _retry(found, _RETRIES)
            return found
        master = settings.master or "local[*]"
        config = {**DEFAULTS, **_local(master), **settings.config}
        with launch.heard():
            session: SparkSession = builder.master(master).config(map=config).getOrCreate()
    except Exception as error:
        said = launch.why_not() if _JVM_ENDED in str(error) else ""
        hide = pipeline.secrets.hide
        line = shortened(hide(said)) if said else _why_not(error, settings.master, hide)
        raise PipelineError(f"Spark did not start: {line}", "session") from error
    return session


def give_up(spark: "SparkSession") -> None:
    """At the end of a run that has failed: a server of Spark Connect is asked once, whether it answers or not."""
    if not hasattr(spark, "_jvm"):
        _retry(spark, 0)


def _retry(spark: Any, times: int) -> None:
    """So often each request to its server of Spark Connect is sent again where that does not answer."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    spark.client.set_retry_policies([DefaultPolicy(max_retries=times, max_backoff=_LONGEST_PAUSE_MS)])


def _reach(remote: str) -> None:
    """Raises PipelineError where no server of Spark Connect answers at this address, without what is said behind it: a
    token is there."""
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    builder = DefaultChannelBuilder(remote)
    channel = builder.toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=_ANSWERS_S)
    except grpc.FutureTimeoutError:
        raise PipelineError(f"no server of Spark Connect answers at sc://{builder.endpoint}") from None
    finally:
        channel.close()


def _why_not(error: Exception, master: str | None, hide: Callable[[str], str]) -> str:
    """In one line."""
    if master is not None and master.startswith("spark://") and _STOPPED in str(error):
        # It has said so in its log alone, and stopped.
        return hide(f"no master of Spark answers at {master}, or it has refused the application")
    return one_line(error, hide)


def _local(master: str) -> dict[str, str]:
    """On one machine: 200 tasks a shuffle, Spark's default, are for clusters."""
    found = _LOCAL.fullmatch(master)
    if found is None:
        return {}
    cores = (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)
    return {
        "spark.sql.shuffle.partitions": str(cores),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
