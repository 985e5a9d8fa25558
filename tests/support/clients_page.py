"""Writes docs/reference/clients.md from one run of tests/clients: which client in which version passed what."""

from __future__ import annotations

import datetime
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from support.client_duties import CODECS, DUTIES

HEAD = """# Clients

<!-- Written by `nox -s clients -- --write-clients-page`. -->

The clients that the test suite runs against a broker of its own, as the run of {date} with LeafCuttr {ours} saw them.
`nox -s clients` runs them all again.

| Client | Version | Cases | Passed | Skipped | Failed |
|--------|---------|------:|-------:|--------:|-------:|
"""
MATRIX = """
## What each client did

{duties}

Each client reads what it wrote itself; what is left in the broker is then looked at by other means. `ok`: done;
`-`: the client has no such thing; `FAILED` and `not run` are what they say.

| Client | Version | {heads} | Compression |
|--------|---------|{rules}|-------------|
"""


def confluent_version() -> str:
    import confluent_kafka

    return f"{version('confluent-kafka')} with librdkafka {confluent_kafka.libversion()[0]}"


def kcat_version() -> str:
    if not shutil.which("kcat"):
        return "-"
    told = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=False).stdout
    words = told.replace(",", " ").split()
    return f"{words[words.index('Version') + 1]} with librdkafka {words[words.index('librdkafka') + 1]}"


# In the order of the page. What is not here carries its version as a parameter of the test, or in the marker.
VERSIONS: dict[str, Callable[[], str]] = {
    "confluent-kafka": confluent_version,
    "kcat": kcat_version,
    "kafka-python": lambda: version("kafka-python"),
    "aiokafka": lambda: version("aiokafka"),
}


def _word(name: str, value: object) -> str:
    """How the page calls one parameter of a case."""
    if isinstance(value, bool):
        return name if value else ""
    return "none" if value is None else str(getattr(value, "name", value))


def _cell(outcomes: set[str]) -> str:
    if "failed" in outcomes:
        return "FAILED"
    return "ok" if "passed" in outcomes else "not run" if outcomes else "-"


class Page:
    """A pytest plugin that collects outcomes and writes the page when the session ends."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.cases: dict[str, tuple[str, str, str, str]] = {}
        self.outcomes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self.names: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
        self.reasons: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.duties: dict[str, tuple[str, ...]] = {}
        self.done: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self.codecs: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.lacks: dict[tuple[str, str], dict[str, str]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            marker = item.get_closest_marker("client")
            if marker is None or not isinstance(item, pytest.Function):
                continue
            parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
            found = parameters.pop("version", None) or marker.kwargs.get("version", "")
            case = item.originalname.removeprefix("test_").replace("_", " ")
            if item.path.stem == "test_restarts" and "restart" not in case:
                case = f"through a restart: {case}"
            what = " ".join(filter(None, (_word(name, value) for name, value in parameters.items())))
            client = (str(marker.args[0]), str(found))
            duty = item.get_closest_marker("duty")
            if duty is not None:
                self.duties[item.nodeid] = duty.args
                self.lacks[client] = dict(marker.kwargs.get("lacks", {}))
                if "codec" in parameters and "program" not in parameters:
                    self.codecs[client].add(str(parameters["codec"]))
            if "program" in parameters:
                case, what = "all duties of the table", ""
            self.cases[item.nodeid] = (*client, case, what)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        known = self.cases.get(report.nodeid)
        if known is None or (report.when != "call" and report.passed):
            return
        client, found, case, what = known
        self.outcomes[client, found][report.outcome] += 1
        if report.skipped:
            self.reasons[client, found].add(
                report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            )
        self.names[client, found].setdefault(case, []).append(what)
        for duty in self.duties.get(report.nodeid, ()):
            self.done[client, found][duty].add(report.outcome)
        for name, value in report.user_properties:
            if name == "codecs":
                self.codecs[client, found].update(str(value).split())

    def matrix(self, rows: list[tuple[str, str]], told: dict[tuple[str, str], str]) -> str:
        """One row a client, one column a duty."""
        out = MATRIX.format(
            duties="\n".join(f"- {name}: {what}" for name, what in DUTIES.items()),
            heads=" | ".join(DUTIES),
            rules="|".join("---" for _ in DUTIES),
        )
        notes = []
        for row in (row for row in rows if row in self.done):
            codecs = ", ".join(sorted(self.codecs[row], key=CODECS.index))
            cells = " | ".join(_cell(self.done[row].get(duty, set())) for duty in DUTIES)
            out += f"| {row[0]} | {told[row]} | {cells} | {codecs} |\n"
            notes += [f"- {row[0]}, {duty}: {why}" for duty, why in self.lacks[row].items()]
        return out + "\nWhat a client has not got:\n\n" + "\n".join(dict.fromkeys(notes)) + "\n"

    def pytest_sessionfinish(self) -> None:
        import leafcuttr

        today = datetime.datetime.now(datetime.UTC).date()
        out = HEAD.format(date=today, ours=leafcuttr.__version__)
        order = list(VERSIONS)
        rows = sorted(self.outcomes, key=lambda row: (order.index(row[0]) if row[0] in order else 99, row))
        told = {row: row[1] or VERSIONS[row[0]]() for row in rows}
        for row in rows:
            count = self.outcomes[row]
            numbers = (count.total(), count["passed"], count["skipped"], count["failed"])
            out += f"| {row[0]} | {told[row]} | {' | '.join(map(str, numbers))} |\n"
        out += self.matrix(rows, told)
        for client in dict.fromkeys(client for client, _ in rows):
            out += f"\n## {client}\n\n"
            cases: dict[str, list[str]] = {}
            for row in (row for row in rows if row[0] == client):
                for case, what in self.names[row].items():
                    cases.setdefault(case, []).extend(what)
            for case, what in cases.items():
                kinds = ", ".join(one for one in dict.fromkeys(what) if one)
                out += f"- {case}{f' ({kinds})' if kinds else ''}\n"
            reasons = set().union(*(self.reasons[row] for row in rows if row[0] == client))
            out += "".join(f"- not run: {reason}\n" for reason in sorted(reasons))
        self.file.write_text(out)
