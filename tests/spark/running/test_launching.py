"""What a JVM that does not start writes becomes one line; what is no stack trace goes on to standard error."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from leafcuttr_spark.running.launching import Launch

YARN = (
    "When running with master 'yarn' either HADOOP_CONF_DIR or YARN_CONF_DIR must be set in the environment."
)


def ended(text: str) -> Launch:
    """A process that writes this, and ends."""
    launch = Launch()
    with pytest.raises(RuntimeError), launch.heard():
        subprocess.run(["cat", "/dev/stdin", "/nowhere/at-all"], input=text.encode(), stdout=2, check=False)
        raise RuntimeError("it has ended")
    return launch


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f'WARNING: Using incubator modules\nException in thread "main" org.apache.spark.SparkException: {YARN}\n'
            "\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)\nCaused by: x\n\t... 7 more\n",
            YARN,
        ),
        ('Exception in thread "main" java.lang.StackOverflowError\n\tat a.b(c)\n', "StackOverflowError"),
        (
            "Picked up JAVA_TOOL_OPTIONS: -X\nUnrecognized VM option 'Foo'\r\n\n"
            "Error: Could not create the Java Virtual Machine.\n"
            "Error: A fatal exception has occurred. Program will exit.\n",
            "Unrecognized VM option 'Foo' Error: Could not create the Java Virtual Machine."
            " cat: /nowhere/at-all: No such file or directory",
        ),
        ("one\ntwo\nthree\nfour\n", "one two three"),
    ],
)
def test_why_it_did_not_start(text: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert ended(text).why_not() == said
    err = capfd.readouterr().err
    assert "\tat " not in err and "Caused by" not in err and "Exception in thread" not in err
    assert "cat: /nowhere/at-all" in err, "what is none of a stack trace is not held back"
    os.write(2, b"as before\n")
    assert capfd.readouterr().err == "as before\n"


def test_what_it_writes_later_is_as_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    launch = Launch()
    with launch.heard():
        process = subprocess.Popen(["sh", "-c", "printf 'begin' >&2; echo; cat >&2"], stdin=-1, stdout=-1)
        assert process.stdout is not None and process.stdout.readline() == b"\n"
    process.communicate(b"\n\tat where it was\n")
    assert launch.why_not() in ("begin", "")
    assert capfd.readouterr().err == "begin\n\tat where it was\n"


def test_very_long_lines_take_little(capfd: pytest.CaptureFixture[str]) -> None:
    assert len(ended("x" * 1_000_000).why_not()) < 20_000
    assert capfd.readouterr().err.count("x") >= 1_000_000


def test_without_standard_error() -> None:
    program = (
        "import os; os.close(2); from leafcuttr_spark.running.launching import Launch; launch = Launch()\n"
    )
    program += "with launch.heard(): pass\nprint(launch.why_not() == '')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True\n"
