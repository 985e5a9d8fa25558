"""docs/reference/clients.md, which a run of tests/clients writes, is no older than the clients pinned in the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.client_duties import DUTIES
from support.client_programs import ALL
from support.clients_page import Case, Page, page, with_section
from support.registry_duties import REGISTRY_DUTIES, REGISTRY_PROGRAMS
from support.secured_duties import (
    AGAIN,
    CLIENTS,
    ELSEWHERE,
    GIVES_UP,
    LACKS,
    QUOTA,
    SECURED_DUTIES,
    SECURITIES,
    SILENT,
)
from support.secured_ways import WAYS, cases

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "clients.md"


def test_every_pinned_client_is_on_it() -> None:
    written = PAGE.read_text()
    for program in (*ALL, *REGISTRY_PROGRAMS):
        assert f"| {program.client} | {program.version} |" in written
    for duties in (DUTIES, REGISTRY_DUTIES, SECURED_DUTIES):
        assert all(f"- {duty}: {what}\n" in written for duty, what in duties.items())


def test_what_a_case_becomes() -> None:
    """Passed, failed, not run, and what the client has not got are told apart, for each version by itself."""

    def case(version: str, outcome: str, duty: str, codec: str = "", reason: str = "") -> Case:
        lacks = {"alter": "it has no administration"}
        return Case("tried", version, duty, codec, [duty], lacks, [codec] if codec else [], outcome, reason)

    told = page(
        [
            case("1", "passed", "produce", "zstd"),
            case("1", "passed", "produce", "none"),
            case("1", "failed", "produce", "lz4"),
            case("1", "passed", "read"),
            case("2", "skipped", "create", reason="not installed: tried"),
        ]
    )
    assert "| tried | 1 | 4 | 3 | 0 | 1 |" in told
    assert "| tried | 2 | 1 | 0 | 1 | 0 |" in told
    cells = dict.fromkeys(DUTIES, "not tried") | {"alter": "-"} | {"produce": "FAILED", "read": "ok"}
    assert f"| tried | 1 | {' | '.join(cells.values())} | none, zstd |" in told
    cells = dict.fromkeys(DUTIES, "not tried") | {"alter": "-"} | {"create": "not run"}
    assert f"| tried | 2 | {' | '.join(cells.values())} |  |" in told
    assert "- tried, alter: it has no administration\n" in told
    assert "- produce (zstd, none, lz4)\n" in told
    assert "- not run: not installed: tried\n" in told


def test_duties_of_the_registry_have_a_table_of_their_own() -> None:
    def case(duty: str, outcome: str) -> Case:
        return Case("tried", "1", duty, "", [duty], {"header": "it has none"}, [], outcome)

    told = page([case("register", "passed"), case("refuse", "failed")])
    cells = dict.fromkeys(REGISTRY_DUTIES, "not tried") | {
        "register": "ok",
        "refuse": "FAILED",
        "header": "-",
    }
    assert f"| tried | 1 | {' | '.join(cells.values())} |\n" in told
    assert "- tried, header: it has none\n" in told
    assert told.count("| tried | 1 |") == 2


# tests/clients registers its marks, and may not be there.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnknownMarkWarning")
def test_every_client_of_the_broker_is_tried_in_each_secured_way_or_has_a_reason() -> None:
    """Without any client: what the tests of a listener that is not open are made of."""
    assert {program.client for program in ALL} <= set(CLIENTS)
    table = (
        PAGE.read_text().partition("## What each client did\n")[2].partition("\n\nWhat a client has not")[0]
    )
    rows = {line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")}
    assert {"kcat", "franz-go"} < rows
    assert rows - {"Client"} <= {*CLIENTS, *ELSEWHERE}
    for client, lacks in LACKS.items():
        assert client in CLIENTS and set(lacks) <= set(SECURED_DUTIES) and all(lacks.values())
    assert set(SILENT) <= set(CLIENTS) and not set(ELSEWHERE) & set(CLIENTS)
    for duty in ("", AGAIN, QUOTA):
        wanted = {
            (client, way.version, security)
            for client, found in WAYS.items()
            for way in found
            for security in SECURITIES
            if security not in LACKS.get(client, {})
            and (duty != AGAIN or (security not in ("SSL", "MTLS") and client not in GIVES_UP))
        }
        made = [(each.values, {mark.name: mark for mark in each.marks}) for each in cases(duty)]
        assert {(values[0], values[1].version, values[2]) for values, _ in made} == wanted
        assert len(made) == len(wanted)
        for (client, _, security), marks in made:
            assert marks["client"].args == (client,)
            shown = duty or security
            assert ("duty" in marks) == (shown not in LACKS.get(client, {}))
            assert "duty" not in marks or marks["duty"].args == (shown,)


def test_ways_to_log_in_have_a_table_of_their_own() -> None:
    lacks = {"kcat": {AGAIN: "it has none"}}

    def case(client: str, duty: str, outcome: str) -> Case:
        return Case(client, "1", duty, "", [duty], lacks.get(client, {}), [], outcome)

    told = page(
        [
            case("kcat", "read", "passed"),
            case("kcat", "PLAIN", "passed"),
            case("kcat", "SSL", "failed"),
            case("Spark", "read", "passed"),
            case("sarama", QUOTA, "passed"),
        ]
    )
    _, _, table = told.partition("## What each client did on a listener that is not open")
    cells = dict.fromkeys(SECURED_DUTIES, "not tried")
    of_kcat = cells | {"PLAIN": "ok", "SSL": "FAILED", AGAIN: "-"}
    assert f"| kcat | 1 | {' | '.join(of_kcat.values())} |\n" in table
    assert f"| sarama | 1 | {' | '.join((cells | {QUOTA: 'ok'}).values())} |\n" in table
    assert (
        f"\n\n- kcat, {AGAIN}: it has none\n- kcat, quota: {SILENT['kcat']}\n- Spark: {ELSEWHERE['Spark']}\n"
        in table
    )
    assert "| Spark | 1 |" not in table
    _, _, alone = page([case("Spark", "read", "passed"), case("sarama", QUOTA, "passed")]).partition(
        "not open"
    )
    assert f"|\n\n- Spark: {ELSEWHERE['Spark']}\n" in alone


def test_the_section_of_ways_to_log_in_is_replaced_alone(tmp_path: Path) -> None:
    def case(client: str, duty: str, outcome: str) -> Case:
        return Case(client, "1", duty, "", [duty], {}, [], outcome)

    file = tmp_path / "clients.md"
    file.write_text(
        without := page([case("kcat", "read", "passed"), case("franz-go, sr", "register", "passed")])
    )
    first, second = case("kcat", "PLAIN", "failed"), case("sarama", "SSL", "passed")
    for found in (first, second):
        told = Page(file, only_secured=True)
        told.cases = {found.client: found}
        told.pytest_sessionfinish()
    written = file.read_text()
    section = written.partition("\n## What each client did on a listener that is not open\n")[2]
    assert "As the run of 20" in section.splitlines()[1]
    section = section.partition("\n## ")[0]
    assert "| sarama | 1 | ok |" in section and "| kcat | 1 |" not in section
    heading = "\n## What each client did on a listener that is not open\n"
    assert written.replace(heading + section, "") == without
    assert written.index(heading) > written.index("What a client has not got:")
    with pytest.raises(ValueError, match="no place"):
        with_section("# Another page\n", heading + section)
    with pytest.raises(ValueError, match="nothing was run"):
        with_section(written, "")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnknownMarkWarning")
@pytest.mark.parametrize(("client", "way", "security"), [("kcat", object(), "PLAIN")], ids=["one"])
def test_a_case_is_called_by_its_way_alone(
    request: pytest.FixtureRequest, client: str, way: object, security: str
) -> None:
    """The client is in the row already."""
    request.node.add_marker(pytest.mark.client("kcat"))
    told = Page(Path("clients.md"))
    told.pytest_collection_modifyitems([request.node])
    (found,) = told.cases.values()
    assert (found.client, found.what) == ("kcat", security)


def test_what_a_client_lacks_may_be_known_to_one_of_its_cases_only() -> None:
    first = Case("kcat", "1", "PLAIN", "", ["PLAIN"], {}, [], "passed")
    second = Case("kcat", "1", "read", "", ["read"], {"alter": "it has none"}, [], "passed")
    assert "- kcat, alter: it has none\n" in page([first, second])
