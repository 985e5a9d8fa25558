"""What Spark and its workers raise becomes one line with its step. The texts are those of Spark 4.2."""

from __future__ import annotations

import re

import pytest

from leafcuttr_spark.lines import one_line
from leafcuttr_spark.pipelines.errors import DeadLetterLimitError, PipelineError, PipelineRefusedError
from leafcuttr_spark.pipelines.model import Pipeline, Secrets, Sink, Source, Step, TopicOrigin, TopicTarget
from leafcuttr_spark.pipelines.operations import Map, PythonFunction, Select
from leafcuttr_spark.running.failures import failure_of, translated

PIPELINE = Pipeline(
    "p",
    {"in": Source(TopicOrigin(("orders",)), line=3)},
    (
        Step("half", Map({"half": "cast(a as int) / 2"}), "orders", line=7),
        Step("clean", PythonFunction("mypackage.functions:clean"), "half", line=9),
        Step("slim", Select(("half",)), "clean", line=11),
    ),
    {"out": Sink("slim", TopicTarget("out", headers={"h": "1 / half"}), line=15)},
    secrets=Secrets(frozenset({"hunter22"})),
)

CAST = """[CAST_INVALID_INPUT] The value 'x' of the type "STRING" cannot be cast to "INT" because it is malformed. \
Correct the value as per the syntax, or change its target type. Use `try_cast` to tolerate malformed input and return \
NULL instead. SQLSTATE: 22018
== SQL (line 1, position 1) ==
cast(a as int) / 2
^^^^^^^^^^^^^^

\tat org.apache.spark.sql.errors.QueryExecutionErrors$.invalidInputInCastToNumberError(QueryExecutionErrors.scala:148)
"""
UNRESOLVED = """[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `amont` cannot \
be resolved. Did you mean one of the following? [`amount`, `id`]. SQLSTATE: 42703; line 1 pos 0;
'Project [unresolvedalias(('amont > 1))]
+- LogicalRDD [a#0, b#1, c#2], false
"""
WORKER = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 \
in stage 3.0 (TID 7) (host executor driver): org.apache.spark.api.python.PythonException: \
Traceback (most recent call last):
  File "/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1998, in main
    process()
  File "/home/me/mypackage/functions.py", line 12, in clean
    raise ValueError("no such thing")
ValueError: no such thing

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:575)
Driver stacktrace:
"""
SOURCE = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_\
ERROR] Failed when Python streaming data source perform latestOffset: Traceback (most recent call last):
  File "/x/pyspark/sql/streaming/python_streaming_source_runner.py", line 1, in main
    x()
leafcuttr_spark.source.losses.DataLossError: the topic orders was deleted; failOnDataLoss=false goes on
 SQLSTATE: 38000
"""


WORKER_START = """[STREAM_FAILED] Query [id = 4-9, runId = 8-8] terminated with exception: Python worker failed to \
connect back. SQLSTATE: XXKST
=== Streaming Query ===
Identifier: p [id = 4-9, runId = 8-8]
"""


CLUSTER = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: io.fabric8.kubernetes.client.KubernetesClientException: An error has occurred.
\tat io.fabric8.kubernetes.client.KubernetesClientException.launderThrowable(KubernetesClientException.java:129)
Caused by: java.io.IOException: it was not answered
\tat io.fabric8.kubernetes.client.dsl.internal.OperationSupport.waitForResult(OperationSupport.java:504)
\t... 20 more
Caused by: io.netty.channel.AbstractChannel$AnnotatedConnectException: Connection refused: /127.0.0.1:1
Caused by: java.net.ConnectException: Connection refused
"""
UNCAUSED = """An error occurred while calling o7.start
: java.lang.IllegalStateException: it is full
\tat org.apache.spark.Full.of(Full.scala:1)
"""


FUNCTION = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/leafcuttr_spark/running/stateless/functions.py", line 200, in call
leafcuttr_spark.running.stateless.functions.FunctionError: steps[2] (slim): ValueError: no

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:679)
"""


@pytest.mark.parametrize(
    ("text", "part", "line", "said"),
    [
        (
            CLUSTER,
            None,
            0,
            "KubernetesClientException: An error has occurred: Connection refused: /127.0.0.1:1",
        ),
        (UNCAUSED, None, 0, "IllegalStateException: it is full"),
        (WORKER_START, None, 0, "Python worker failed to connect back."),
        (CAST, "steps[0] (half)", 7, 'The value \'x\' of the type "STRING" cannot be cast to "INT" because'),
        (WORKER, "steps[1] (clean)", 9, "ValueError: no such thing"),
        (
            UNRESOLVED,
            None,
            0,
            "A column, variable, or function parameter with name `amont` cannot be resolved.",
        ),
        (SOURCE, None, 0, "the topic orders was deleted; failOnDataLoss=false goes on"),
        (CAST.replace("cast(a as int) / 2", "1 / half"), "sinks.out", 15, "The value 'x'"),
        ("[USER_RAISED_EXCEPTION] a row has no topic SQLSTATE: P0001", None, 0, "a row has no topic"),
        ("orders-0: the record at offset 7 cannot be decoded", "sources.in", 3, "orders-0: the record at"),
        ("old-orders-0: the record at offset 7 cannot be decoded", None, 0, "old-orders-0: the record"),
        (
            "orders: the client may not READ topic orders (allowed by: x)",
            "sources.in",
            3,
            "orders: the client",
        ),
        ("the client may not READ topic orders-2 (allowed by: x)", None, 0, "the client may not"),
        ("out: the client may not WRITE topic out (allowed by: x)", "sinks.out", 15, "out: the client"),
        ("steps[2] (slim): ValueError: no", "steps[2] (slim)", 11, "ValueError: no"),
        (FUNCTION, "steps[2] (slim)", 11, "ValueError: no"),
    ],
)
def test_one_line_and_the_step(text: str, part: str | None, line: int, said: str) -> None:
    error = failure_of(RuntimeError(text), PIPELINE)
    assert (error.step, error.line) == (part, line)
    assert error.message.startswith(said)
    assert "\n" not in error.message
    assert "SQLSTATE" not in error.message
    assert "\tat" not in error.message


def test_secrets_are_hidden_and_long_lines_cut() -> None:
    error = failure_of(RuntimeError("hunter22 is wrong " + "x" * 1000), PIPELINE)
    assert error.message.startswith("*** is wrong x")
    assert len(error.message) <= 500
    error = failure_of(RuntimeError("x" * 490 + "hunter22 is wrong"), PIPELINE)
    assert "hunt" not in error.message


def test_secrets_are_hidden_in_errors_of_pipelines() -> None:
    for raised in (
        PipelineError("hunter22 is wrong", "sinks.out", 15, "p.yaml"),
        DeadLetterLimitError("hunter22 is wrong", "dead-letters"),
    ):
        error = failure_of(raised, PIPELINE)
        assert type(error) is type(raised)
        assert error.message == "*** is wrong"
        assert str(error).endswith(f"{raised.step}: *** is wrong")
    with pytest.raises(PipelineError) as caught, translated(PIPELINE, "steps[0] (half)", 7):
        raise PipelineError("hunter22", "sinks.out")
    assert str(caught.value) == "sinks.out: ***"


def test_errors_of_python_have_their_names() -> None:
    assert one_line(KeyError("a")) == "KeyError: 'a'"
    assert one_line(OSError("no such file")) == "no such file"
    assert one_line(ValueError()) == "ValueError: ValueError"


def test_a_refusal_stays_one() -> None:
    with pytest.raises(PipelineRefusedError) as caught, translated(PIPELINE, "steps[0] (half)", 7):
        raise PipelineRefusedError("two of one name")
    assert (caught.value.step, caught.value.line) == ("steps[0] (half)", 7)
    raised = RuntimeError(
        f"Traceback (most recent call last):\n  File x\n{PipelineRefusedError.__name__}: as it is"
    )
    assert one_line(raised) == "as it is"


def test_within_a_part() -> None:
    with pytest.raises(PipelineError) as caught, translated(PIPELINE, "steps[0] (half)", 7):
        raise ValueError("no")
    assert (caught.value.step, caught.value.line, caught.value.message) == (
        "steps[0] (half)",
        7,
        "ValueError: no",
    )
    with pytest.raises(PipelineError) as caught, translated(PIPELINE, "steps[0] (half)", 7):
        raise PipelineError("mine")
    assert (caught.value.step, caught.value.message) == ("steps[0] (half)", "mine")
    with pytest.raises(PipelineError) as caught, translated(PIPELINE, "steps[0] (half)", 7):
        raise PipelineError("other", "sinks.x")
    assert caught.value.step == "sinks.x"


def test_an_edit_that_has_other_places_to_read_from_says_what_to_do() -> None:
    said = (
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: assertion failed: There are [1] sources"
        " in the checkpoint offsets and now there are [2] sources requested by the query. Cannot continue."
    )
    found = failure_of(RuntimeError(said), PIPELINE)
    assert isinstance(found, PipelineRefusedError), "another try would end in the same way"
    assert found.message.startswith(
        "its query reads in 2 places, and its checkpoint is of one with 1: dead letters, "
    )
    assert found.message.endswith("leafcuttr spark replay FILE --from earliest")


class JavaError(Exception):
    """As PySpark makes one of Java's, which keeps its cause apart."""

    def __init__(self, text: str, cause: BaseException | None = None) -> None:
        super().__init__(text)
        self._cause = cause


def test_of_an_error_that_says_that_another_one_was_thrown_the_other_one_counts() -> None:
    query = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Exception thrown in awaitResult: "
    end = "SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: p"
    inner = JavaError("Job 5 cancelled because SparkContext was shut down")
    found = JavaError(query + end, JavaError("Exception thrown in awaitResult: ", inner))
    assert one_line(found) == "Job 5 cancelled because SparkContext was shut down"
    assert one_line(JavaError(query + end)).endswith("Exception thrown in awaitResult:"), "it has no cause"
    assert one_line(JavaError("it is full", inner)) == "it is full"
    raised = RuntimeError("Exception thrown in awaitResult:")
    raised.__cause__ = raised
    assert one_line(raised) == "Exception thrown in awaitResult:"


RPC = """<_InactiveRpcError of RPC that terminated with:
\tstatus = StatusCode.UNAVAILABLE
\tdetails = "failed to connect to all addresses"
\tdebug_error_string = "UNAVAILABLE:failed to connect to all addresses"
>"""


def test_what_grpc_raises_is_its_own_message() -> None:
    """Under Spark Connect."""
    assert one_line(OSError(RPC)) == "failed to connect to all addresses"
    # One that came while a stream of answers was read.
    stream = re.sub(r"<_\w+ of", "<_MultiThreadedRendezvous of", RPC)
    assert stream != RPC and one_line(OSError(stream)) == "failed to connect to all addresses"
    bare = RPC.replace("failed to connect to all addresses", "")
    assert one_line(OSError(f"{bare} (of Spark)")) == "UNAVAILABLE (of Spark)"


def test_a_limit_that_spark_connect_has_as_a_text_stays_one() -> None:
    said = "3 dead letters in this run: stop-after is 3. The last batch is not written"
    text = f"(org.apache.spark.Error) steps[0] (half)\nDeadLetterLimitError: dead-letters: {said}\n"
    found = failure_of(OSError(text), PIPELINE)
    assert type(found) is DeadLetterLimitError
    assert str(found) == f"dead-letters: {said}"
