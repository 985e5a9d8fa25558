"""Clients in Go, Node, Rust and Java do what every client must: `support.client_duties` says what that is."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from support.client_duties import DUTIES, Told, check
from support.client_programs import ALL, Program

Ran = Callable[[Program], tuple[str, Told]]
pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]


def cases() -> list[object]:
    found = []
    for program in ALL:
        client = pytest.mark.client(program.client, version=program.version, lacks=program.lacks)
        needs = pytest.mark.skipif(bool(program.missing), reason=program.missing)
        for duty in DUTIES:
            if duty not in program.lacks:
                name = f"{program.client}-{program.version}-{duty}"
                found.append(
                    pytest.param(program, duty, id=name, marks=[client, needs, pytest.mark.duty(duty)])
                )
    return found


@pytest.fixture(scope="session")
def ran(bootstrap: str) -> Ran:
    """The name a program used and what it said. It runs once, whichever of its duties is asked for first."""
    seen: dict[int, tuple[str, Told]] = {}

    def run(program: Program) -> tuple[str, Told]:
        number = ALL.index(program)
        if number not in seen:
            name = f"duties-{os.getpid()}-{number}"
            seen[number] = name, program.run(bootstrap, name)
        return seen[number]

    return run


@pytest.mark.parametrize(("program", "duty"), cases())
def test_duty(
    bootstrap: str, ran: Ran, program: Program, duty: str, record_property: Callable[[str, object], None]
) -> None:
    name, told = ran(program)
    assert duty in told.did, told.error
    check(duty, bootstrap, name, told)
    if duty == "produce":
        record_property("codecs", told.did[duty])


def test_they_all_go_through(ran: Ran) -> None:
    """Behind its last duty each program has nothing more to complain about."""
    for program in ALL:
        if not program.missing:
            name, told = ran(program)
            assert not told.error, f"{program.client} {program.version} as {name}: {told.error}"
            assert list(told.did) == [duty for duty in DUTIES if duty not in program.lacks]
