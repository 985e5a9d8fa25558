"""Writes docs/reference/clients.md from one run of tests/clients: which client in which version passed what."""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version as installed
from pathlib import Path

import pytest

from support.client_duties import CODECS, DUTIES
from support.mqtt_duties import MQTT_DUTIES
from support.registry_duties import REGISTRY_DUTIES
from support.secured_duties import ELSEWHERE, SECURED_DUTIES, SILENT

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

The clients in Go, Node, Rust and Java each run one program through all of it, and other clients then
check the result; for the others several tests show it. `-`: the client has no such function; `not tried`: there is no
test of it; `not run`: skipped in this run.

| Client | Version | {heads} | Compression |
|--------|---------|{rules}|-------------|
"""
SECURED_MATRIX = """
## What each client did on a listener that is not open

As the run of {date} with LeafCuttr {ours} saw them; `pytest tests/clients/test_rights.py --long` runs them all again.

{duties}

In each way the client writes to a topic and reads it in a group, as ACLs allow it to, and is refused another topic.
`support/secured_duties.py` of the tests is the list of the ways. `-`: the client cannot do it.

| Client | Version | {heads} |
|--------|---------|{rules}|
"""
MQTT_MATRIX = """
## What each MQTT client did

{duties}

The clients in JavaScript, Go and Java each run one program through all of it; for the others several tests show it.

| Client | Version | {heads} |
|--------|---------|{rules}|
"""
REGISTRY_MATRIX = """
## What each client of the schema registry did

{duties}

The clients in JavaScript and Go each run one program through all of it; for the others several tests show it. `-`: the
client has no such function.

| Client | Version | {heads} |
|--------|---------|{rules}|
"""


def confluent_version() -> str:
    import confluent_kafka

    return f"{installed('confluent-kafka')} with librdkafka {confluent_kafka.libversion()[0]}"


def kcat_version() -> str:
    if not shutil.which("kcat"):
        return "-"
    told = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=False).stdout
    words = told.replace(",", " ").split()
    return f"{words[words.index('Version') + 1]} with librdkafka {words[words.index('librdkafka') + 1]}"


def mosquitto_version() -> str:
    if not shutil.which("mosquitto_pub"):
        return "-"
    told = subprocess.run(["mosquitto_pub", "--version"], capture_output=True, text=True, check=False).stdout
    return told.split()[2]


# In the order of the page. What is not here carries its version as a parameter of the test, or in the marker.
VERSIONS: dict[str, Callable[[], str]] = {
    "confluent-kafka": confluent_version,
    "confluent-kafka, registry": lambda: installed("confluent-kafka"),
    "kcat": kcat_version,
    "kafka-python": lambda: installed("kafka-python"),
    "aiokafka": lambda: installed("aiokafka"),
    "paho-mqtt": lambda: installed("paho-mqtt"),
    "aiomqtt": lambda: installed("aiomqtt"),
    "mosquitto_pub, mosquitto_sub": mosquitto_version,
}


def _word(name: str, value: object) -> str:
    """How the page calls one parameter of a case."""
    if isinstance(value, bool):
        return name if value else ""
    return "none" if value is None else str(getattr(value, "name", value))


def _cell(outcomes: set[str]) -> str:
    if "failed" in outcomes:
        return "FAILED"
    return "ok" if "passed" in outcomes else "not run" if outcomes else "not tried"


@dataclass
class Case:
    """One test as it ended. `version` is empty where `VERSIONS` knows it."""

    client: str
    version: str
    name: str
    what: str
    duties: list[str]
    lacks: dict[str, str]
    codecs: list[str]
    outcome: str = ""
    reason: str = ""

    @property
    def row(self) -> tuple[str, str]:
        return self.client, self.version or VERSIONS[self.client]()


class Page:
    """A pytest plugin that collects outcomes and writes the page when the session ends.

    With `outcomes`, a file, those of earlier sessions that named the same file are on the page too. `only_secured`: the
    section of the ways to log in is written, which has a date of its own, and the rest of the page stays.
    """

    def __init__(self, file: Path, outcomes: Path | None = None, *, only_secured: bool = False) -> None:
        self.file = file
        self.only_secured = only_secured
        self.outcomes = outcomes
        self.cases: dict[str, Case] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            marker = item.get_closest_marker("client")
            if marker is None or not isinstance(item, pytest.Function):
                continue
            parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
            version = parameters.pop("version", None) or marker.kwargs.get("version", "")
            name = item.originalname.removeprefix("test_").replace("_", " ")
            if item.path.stem == "test_restarts" and "restart" not in name:
                name = f"through a restart: {name}"
            duty = item.get_closest_marker("duty")
            codecs = [str(parameters["codec"] or "none")] if duty and "codec" in parameters else []
            for known in ("client", "way"):  # which the row says already
                parameters.pop(known, None)
            if "duty" in parameters:
                name, parameters = "all duties of the table", {}
            self.cases[item.nodeid] = Case(
                client=str(marker.args[0]),
                version=str(version),
                name=name,
                what=" ".join(filter(None, (_word(key, value) for key, value in parameters.items()))),
                duties=list(duty.args) if duty else [],
                lacks=dict(marker.kwargs.get("lacks", {})),
                codecs=codecs,
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        case = self.cases.get(report.nodeid)
        if case is None or (report.when != "call" and report.passed):
            return
        case.outcome = report.outcome
        if report.skipped:
            told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            case.reason = told.removeprefix("Skipped: ")
        for name, value in report.user_properties:
            if name == "codecs":
                case.codecs = str(value).split()

    def pytest_sessionfinish(self) -> None:
        cases = {node: case for node, case in self.cases.items() if case.outcome}
        if self.outcomes is not None:
            if self.outcomes.exists():
                earlier = json.loads(self.outcomes.read_text())
                cases = {node: Case(**case) for node, case in earlier.items()} | cases
            self.outcomes.write_text(json.dumps({node: asdict(case) for node, case in cases.items()}))
        found = list(cases.values())
        if self.only_secured:
            self.file.write_text(with_section(self.file.read_text(), secured_matrix(_rows(found))))
        else:
            self.file.write_text(page(found))


def _today() -> dict[str, str]:
    import leafcuttr

    return {"date": str(datetime.datetime.now(datetime.UTC).date()), "ours": leafcuttr.__version__}


def _rows(cases: list[Case]) -> dict[tuple[str, str], list[Case]]:
    """The cases of each client and version, in the order of the page."""
    rows: dict[tuple[str, str], list[Case]] = defaultdict(list)
    order = list(VERSIONS)
    for case in sorted(cases, key=lambda case: order.index(case.client) if case.client in order else 99):
        rows[case.row].append(case)
    return rows


def page(cases: list[Case]) -> str:
    """The page that shows these cases."""
    rows = _rows(cases)
    out = HEAD.format(**_today())
    for (client, version), mine in rows.items():
        count = Counter(case.outcome for case in mine)
        numbers = (count.total(), count["passed"], count["skipped"], count["failed"])
        out += f"| {client} | {version} | {' | '.join(map(str, numbers))} |\n"
    out += matrix(rows) + secured_matrix(rows) + other_matrix(rows, MQTT_MATRIX, MQTT_DUTIES)
    out += other_matrix(rows, REGISTRY_MATRIX, REGISTRY_DUTIES)
    for client in dict.fromkeys(client for client, _ in rows):
        out += f"\n## {client}\n\n"
        mine = [case for case in cases if case.client == client]
        kinds: dict[str, list[str]] = defaultdict(list)
        for case in mine:
            kinds[case.name].append(case.what)
        for name, what in kinds.items():
            told = ", ".join(one for one in dict.fromkeys(what) if one)
            out += f"- {name}{f' ({told})' if told else ''}\n"
        out += "".join(f"- not run: {reason}\n" for reason in sorted({case.reason for case in mine} - {""}))
    return out


def _lacks(cases: list[Case], duties: Mapping[str, str]) -> dict[str, str]:
    """What one client has not got, of these duties, and why: each case knows the part of its own test."""
    return {duty: why for case in cases for duty, why in case.lacks.items() if duty in duties}


def matrix(rows: dict[tuple[str, str], list[Case]]) -> str:
    """One row a client, one column a duty."""
    out = MATRIX.format(
        duties="\n".join(f"- {name}: {what}" for name, what in DUTIES.items()),
        heads=" | ".join(DUTIES),
        rules="|".join("---" for _ in DUTIES),
    )
    notes: dict[str, None] = {}
    for (client, version), mine in rows.items():
        done = {duty: {case.outcome for case in mine if duty in case.duties} for duty in DUTIES}
        if not any(done.values()):
            continue
        passed = {codec for case in mine if case.outcome == "passed" for codec in case.codecs}
        lacks = _lacks(mine, DUTIES)
        cells = " | ".join("-" if duty in lacks else _cell(done[duty]) for duty in DUTIES)
        out += f"| {client} | {version} | {cells} | {', '.join(sorted(passed, key=CODECS.index))} |\n"
        for duty, why in lacks.items():
            notes[f"- {client}, {duty}: {why}\n"] = None
    return out + "\nWhat a client has not got:\n\n" + "".join(notes)


def other_matrix(rows: dict[tuple[str, str], list[Case]], head: str, duties: Mapping[str, str]) -> str:
    """The same of clients that have duties of their own; nothing if none was run."""
    out, notes = "", ""
    for (client, version), mine in rows.items():
        done = {duty: {case.outcome for case in mine if duty in case.duties} for duty in duties}
        if any(done.values()):
            lacks = _lacks(mine, duties)
            cells = ("-" if duty in lacks else _cell(done[duty]) for duty in duties)
            out += f"| {client} | {version} | {' | '.join(cells)} |\n"
            notes += "".join(f"- {client}, {duty}: {why}\n" for duty, why in lacks.items())
    head = head.format(
        duties="\n".join(f"- {name}: {what}" for name, what in duties.items()),
        heads=" | ".join(duties),
        rules="|".join("---" for _ in duties),
    )
    return out and head + out + (notes and f"\n{notes}")


def secured_matrix(rows: dict[tuple[str, str], list[Case]]) -> str:
    """That of the ways to log in, and which clients of the page are not in it."""
    head = SECURED_MATRIX.format(**_today(), duties="{duties}", heads="{heads}", rules="{rules}")
    out = other_matrix(rows, head, SECURED_DUTIES)
    if not out:
        return ""
    shown = dict.fromkeys(client for client, _ in rows)
    notes = [f"- {one}, quota: {SILENT[one]}\n" for one in shown if one in SILENT]
    notes += [f"- {one}: {why}\n" for one, why in ELSEWHERE.items()]
    begins = "" if out.rpartition("\n\n")[2].startswith("- ") else "\n"
    return out + begins + "".join(notes)


def with_section(written: str, section: str) -> str:
    """A page with this section in place of its own of that name; without one, behind that of the duties. Raises
    ValueError where neither is."""
    name = section.strip().partition("\n")[0]
    for before, keep in ((name, False), ("## What each client did", True)):
        begin = written.find(f"\n{before}\n")
        if section and begin >= 0:
            end = written.find("\n## ", begin + 1)
            end = len(written) if end < 0 else end
            return written[: end if keep else begin] + section + written[end:]
    raise ValueError("nothing was run, or the page has no place for it")
