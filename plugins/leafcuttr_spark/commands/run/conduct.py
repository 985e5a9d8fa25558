"""One run of a pipeline: from its file to the exit status of the command.

    read the file -> Java -> the checkpoint is ours alone, and allows this pipeline -> Spark -> batches -> the end

Whatever fails is one line, the last that is printed, and stands in the status file.
"""

import logging
import os
import socket
import subprocess
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from leafcuttr_sdk.errors import BrokerError, PluginError
from leafcuttr_spark.commands.common import need_packages
from leafcuttr_spark.commands.run.showing import Shown
from leafcuttr_spark.commands.run.stopping import StopRequest, stop_by_signal
from leafcuttr_spark.operating.checkpoint import read_checkpoint
from leafcuttr_spark.operating.exits import Exit
from leafcuttr_spark.operating.history import HISTORY, History
from leafcuttr_spark.operating.java import java_trouble
from leafcuttr_spark.operating.lag import oldest_ms
from leafcuttr_spark.operating.monitor import RunMonitor
from leafcuttr_spark.operating.places import checkpoint_of, local_path, own_folder
from leafcuttr_spark.operating.starting import START, EditError, begun_at, check_edit, locked, read_start
from leafcuttr_spark.operating.status import STATUS, RunState, RunStatus, read_status
from leafcuttr_spark.options import OptionError
from leafcuttr_spark.pipelines.errors import (
    DeadLetterLimitError,
    PipelineError,
    PipelineFaultsError,
    PipelineRefusedError,
)
from leafcuttr_spark.pipelines.model import Pipeline, TopicOrigin, Trigger
from leafcuttr_spark.running.waiting import (
    RegistryWatch,
    Watch,
    executor_watch,
    first_trouble,
    registry_trouble,
)

if TYPE_CHECKING:
    from leafcuttr_sdk.types import TopicPartition

LOGGER: Final = logging.getLogger("leafcuttr.spark")

_EXPECTED: Final = (OptionError, PipelineFaultsError, PipelineError, PluginError, BrokerError, OSError)
_SHORT: Final = {"request.timeout.ms": "3000", "default.api.timeout.ms": "3000"}
_NOTHING_TO_DO: Final = "Waiting for data"
"""How Spark's message begins while all records are read."""
_NO_JVM: Final = "the JVM of Spark has ended"
_JVM_END_S: Final = 5.0
_TURN_S: Final = 0.5
_STOPPING_TURN_S: Final = 0.05


class RunOptions(NamedTuple):
    """What was given to the command."""

    file: Path
    variables: Mapping[str, str]
    once: bool = False
    as_json: bool = False
    status_file: Path | None = None
    pause_ms: int = 1000


class RunFailure(Exception):
    """The run ends here. The message is the line for the person."""

    def __init__(self, status: Exit, line: str) -> None:
        super().__init__(line)
        self.status = status


def conduct(options: RunOptions, echo: Callable[[str], None]) -> None:
    """Until the end of the run. Raises RunFailure for any end but that of `Exit.DONE`."""
    pipeline = _read(options)
    with _failures(pipeline):
        check_spark(pipeline)
        checkpoint = checkpoint_of(pipeline)
        own = own_folder(checkpoint, pipeline.name)
        # The signals first: who sees the lock may send one.
        with stop_by_signal() as stop, locked(own):
            local = local_path(checkpoint)
            there = read_checkpoint(local) if local is not None else None
            check_edit(pipeline, there, own)
            if there is not None and not there.has_begun and (start := read_start(own / START)) is not None:
                pipeline = begun_at(pipeline, start)
            monitor = _monitor(pipeline, options, checkpoint, own)
            shown = Shown(echo, as_json=options.as_json, pause_ms=options.pause_ms)
            try:
                _say_which_are_away(pipeline, monitor)
                _run(pipeline, monitor, shown, stop)
            except Exception as error:
                if not _is_of_stop(error, stop):
                    monitor.enter(RunState.FAILED, _line(error, pipeline))
                    raise
                LOGGER.warning(
                    "the last batch is not done, the next run repeats it: %s", _line(error, pipeline)
                )
                monitor.enter(RunState.STOPPED)
            shown.end(monitor.status)


def _is_of_stop(error: Exception, stop: StopRequest) -> bool:
    """Whether it was raised because the run was told to end, by a second signal or one to the whole group, which ends
    the JVM at once: a batch that fails while it is waited for has failed."""
    if not stop.is_made or isinstance(error, DeadLetterLimitError):
        return False
    return stop.is_urgent or _text(error) == _NO_JVM or _jvm_has_ended()


def _jvm_has_ended() -> bool:
    """The batch fails a moment before the JVM is gone. False where the JVM is not a process of this one."""
    jvm = _jvm()
    if jvm is None:
        return False
    try:
        jvm.wait(_JVM_END_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _jvm() -> "subprocess.Popen[bytes] | None":
    """The one that PySpark has started."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(getattr(context, "_gateway", None), "proc", None)


# Before Spark


def _read(options: RunOptions) -> Pipeline:
    need_packages(Exit.WRONG)
    from leafcuttr_spark.pipelines.checking.whole import load_pipeline

    try:
        pipeline, notes, _ = load_pipeline(str(options.file), dict(options.variables))
    except PipelineFaultsError as error:
        raise RunFailure(Exit.WRONG, str(error)) from None
    for note in notes:
        LOGGER.warning("%s", note.text(str(options.file)))
    session = pipeline.session
    if session.remote is None:
        # With Spark Connect it is the server's.
        session = replace(session, config={"spark.log.level": "FATAL", **session.config})
    trigger = Trigger(available_now=True) if options.once else pipeline.trigger
    return replace(pipeline, session=session, trigger=trigger)


def check_spark(pipeline: Pipeline) -> None:
    """Raises RunFailure where Spark or its Java is missing."""
    if find_spec("pyspark") is None:
        extra = "spark-connect" if pipeline.session.remote else "spark"
        raise RunFailure(Exit.WRONG, f"Spark is not installed: pip install 'leafcuttr[{extra}]'")
    if pipeline.session.remote is None and find_spec("pyspark.core") is None:
        raise RunFailure(
            Exit.WRONG,
            "session: of Spark only the client of Spark Connect is installed: pip install 'leafcuttr[spark]', or name a"
            " server, as session: {remote: 'sc://host:15002'}",
        )
    if pipeline.session.remote is None and (trouble := java_trouble()) is not None:
        raise RunFailure(Exit.WRONG, trouble)


@contextmanager
def _failures(pipeline: Pipeline) -> Iterator[None]:
    """What is raised becomes the end of the run, in a line without secrets."""
    try:
        yield
    except RunFailure:
        raise
    except Exception as error:
        if not isinstance(error, _EXPECTED):
            # As what py4j raises once the JVM was killed.
            LOGGER.debug("the run of %s has failed", pipeline.name, exc_info=True)
        raise RunFailure(_exit_of(error), _line(error, pipeline)) from error


def _exit_of(error: BaseException) -> Exit:
    if isinstance(error, EditError | DeadLetterLimitError):
        return Exit.REFUSED
    is_wrong = isinstance(error, OptionError | PipelineFaultsError | PipelineRefusedError)
    return Exit.WRONG if is_wrong else Exit.FAILED


def _line(error: BaseException, pipeline: Pipeline) -> str:
    # Hidden first: of a secret that is shortened a part would be left.
    return pipeline.secrets.hide(_text(error, pipeline.secrets.hide))


def _text(error: BaseException, hide: Callable[[str], str] = str) -> str:
    from leafcuttr_spark.lines import one_line

    try:
        if isinstance(error, ConnectionError):
            return _NO_JVM
        if isinstance(error, _EXPECTED):
            return " ".join(hide(str(error)).split()) or type(error).__name__
        return one_line(error, hide)
    except ConnectionError:
        # The text of an exception of Java is in the JVM.
        return _NO_JVM


def _monitor(pipeline: Pipeline, options: RunOptions, checkpoint: str, own: Path) -> RunMonitor:
    now = _now_ms()
    last = read_status(own / STATUS)
    status = RunStatus(
        pipeline=pipeline.name,
        file=str(options.file.absolute()),
        checkpoint=checkpoint,
        run=str(uuid.uuid4()),
        pid=os.getpid(),
        host=socket.gethostname(),
        state=RunState.STARTING,
        began_ms=now,
        written_ms=now,
        last_failure=last.failure if last is not None else "",
    )
    files = (own / STATUS, *([options.status_file] if options.status_file is not None else []))
    monitor = RunMonitor(status, files, History(own / HISTORY), _now_ms, _oldest_of(pipeline))
    monitor.enter(RunState.STARTING)
    return monitor


def _oldest_of(pipeline: Pipeline) -> "Callable[[Mapping[TopicPartition, int]], int | None]":
    """The age of lag is found where all topics are of one cluster."""
    clusters = {
        one.origin.cluster for one in pipeline.sources.values() if isinstance(one.origin, TopicOrigin)
    }
    if len(clusters) != 1:
        return lambda positions: None
    properties = pipeline.clusters[clusters.pop()]

    def oldest(positions: "Mapping[TopicPartition, int]") -> int | None:
        from leafcuttr_spark.spark.peers import peer_of

        try:
            return oldest_ms(peer_of(properties), positions)
        except PluginError:
            return None

    return oldest


def _say_which_are_away(pipeline: Pipeline, monitor: RunMonitor) -> None:
    """A line at once: Spark tries again for minutes before it says so."""
    from leafcuttr_sdk.blocking_peers import open_peer

    for name, properties in pipeline.clusters.items():
        try:
            with open_peer({**properties, **_SHORT}) as peer:
                peer.cluster_id()
        except BrokerError as error:
            line = pipeline.secrets.hide(f"cluster {name} is away, and is tried again: {error}")
            LOGGER.warning("%s", line)
            monitor.enter(RunState.STARTING, line)


# With Spark


def _run(pipeline: Pipeline, monitor: RunMonitor, shown: Shown, stop: StopRequest) -> None:
    from leafcuttr_spark.running.run import start
    from leafcuttr_spark.running.session import give_up, session_of
    from leafcuttr_spark.spark.progress import ProgressListener

    with ExitStack() as stack:
        quieten_java()
        # That a server does not answer is the line that the run ends with.
        warnings.filterwarnings("ignore", category=UserWarning, module=r"pyspark\.sql\.connect")
        spark = session_of(pipeline)
        stack.callback(_if_it_can, spark.stop)
        listener = ProgressListener(pipeline.name, monitor.told)
        spark.streams.addListener(listener)
        stack.callback(_if_it_can, spark.streams.removeListener, listener)
        if stop.is_made:
            monitor.enter(RunState.STOPPED)
            return
        running = start(pipeline, spark)
        stack.callback(_if_it_can, running.stop)
        monitor.enter(RunState.RUNNING)
        try:
            watches = (executor_watch(spark), *_registry_watch(pipeline, running, monitor))
            _watch(running, monitor, shown, stop, watches)
        except Exception:
            _if_it_can(give_up, spark)
            raise
        finally:
            _if_it_can(_last_words, running, monitor, shown)
        monitor.enter(RunState.STOPPED if stop.is_made else RunState.FINISHED)


def _if_it_can(function: Callable[..., object], *arguments: object) -> None:
    """At the end: where the JVM is gone there is nothing to do, and what was raised before counts."""
    try:
        function(*arguments)
    except Exception:
        LOGGER.debug("at the end of a run", exc_info=True)


def quieten_java() -> None:
    """Let a JVM that is started after this say nothing that a person cannot use, unless its log is configured."""
    if "SPARK_SUBMIT_OPTS" not in os.environ and "SPARK_CONF_DIR" not in os.environ:
        file = Path(__file__).with_name("log4j2.properties").as_uri()
        os.environ["SPARK_SUBMIT_OPTS"] = f"-Dlog4j2.configurationFile={file}"


def _registry_watch(pipeline: Pipeline, running: Any, monitor: RunMonitor) -> Iterator[Watch]:
    if (properties := pipeline.registry) is not None:
        yield RegistryWatch(
            lambda: pipeline.secrets.hide(registry_trouble(properties)),
            lambda: monitor.status.batches if running.query.status["isTriggerActive"] else None,
        )


def _watch(
    running: Any, monitor: RunMonitor, shown: Shown, stop: StopRequest, watches: tuple[Watch, ...]
) -> None:
    """Until the query has ended, or was stopped between two batches. A batch that waits for what does not come is none
    that a stop waits for."""
    asked_at: int | None = None
    while not running.wait(_STOPPING_TURN_S if stop.is_made else _TURN_S):
        shown.batches(monitor.tick(running.dead_letters), monitor.status)
        if monitor.status.last_failure and running.query.status["message"].startswith(_NOTHING_TO_DO):
            monitor.goes_on()
        waits = first_trouble(watches)
        if not stop.is_made:
            if waits != monitor.status.trouble:
                LOGGER.warning("%s", waits or "the batch goes on")
                monitor.enter(RunState.RUNNING, waits)
            continue
        if asked_at is None:
            asked_at = monitor.status.batches
            monitor.enter(RunState.STOPPING)
        is_between = not running.query.status["isTriggerActive"] or monitor.status.batches > asked_at
        if is_between or stop.is_urgent or waits:
            running.stop()
            return


def _last_words(running: Any, monitor: RunMonitor, shown: Shown) -> None:
    """Listeners are told a moment after the query has ended."""
    deadline = time.monotonic() + 2.0
    last = running.query.lastProgress
    while last is not None and time.monotonic() < deadline:
        if monitor.status.batch is not None and monitor.status.batch >= last.batchId:
            break
        shown.batches(monitor.tick(running.dead_letters), monitor.status)
        time.sleep(_STOPPING_TURN_S)
    shown.batches(monitor.tick(running.dead_letters), monitor.status)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
