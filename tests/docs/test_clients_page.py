"""docs/reference/clients.md, which a run of tests/clients writes, is no older than the clients pinned in the tree."""

from __future__ import annotations

from pathlib import Path

from support.client_duties import DUTIES
from support.client_programs import ALL
from support.clients_page import Case, page
from support.registry_duties import REGISTRY_DUTIES, REGISTRY_PROGRAMS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "clients.md"


def test_every_pinned_client_is_on_it() -> None:
    written = PAGE.read_text()
    for program in (*ALL, *REGISTRY_PROGRAMS):
        assert f"| {program.client} | {program.version} |" in written
    for duties in (DUTIES, REGISTRY_DUTIES):
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
