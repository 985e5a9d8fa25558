"""How descriptors are shared: at every limit something is left for the broker itself."""

from __future__ import annotations

import resource

import pytest

from leafcuttr.runtime import connection_budget

LIMITS = (256, 400, 1024, 4096, 20_000, 65_536, 1_048_576)


@pytest.fixture(params=LIMITS)
def limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (request.param, request.param))
    found: int = request.param
    return found


def files(limit: int) -> int:
    """What the logs keep open at most; see `leafcuttr.log.manager`."""
    return max(min(limit // 4, 64), min((limit - 512) // 2, 16_384))


def test_plugins_leave_clients_a_quarter(limit: int) -> None:
    for_logs = files(limit)
    for of_plugins in (
        0,
        connection_budget.share_of_plugins(for_logs),
        connection_budget.most_of_plugins(for_logs),
    ):
        clients = connection_budget.most_of_clients(for_logs, of_plugins)
        assert clients >= limit // 4
        if of_plugins:
            assert clients <= connection_budget.most_of_clients(for_logs, 0)


def test_by_default_all_that_is_allowed_leaves_descriptors(limit: int) -> None:
    for_logs = files(limit)
    share = connection_budget.share_of_plugins(for_logs)
    used = for_logs + share + connection_budget.most_of_clients(for_logs, share)
    assert limit - used >= min(limit // 4, 256)


def test_whatever_is_set_clients_the_admin_port_and_some_files_have_theirs(limit: int) -> None:
    for_logs = files(limit)
    most = connection_budget.most_of_plugins(for_logs)
    assert connection_budget.share_of_plugins(for_logs) <= most
    used = most + connection_budget.most_of_clients(for_logs, most)
    assert limit - used >= min(limit // 4, 64 + 256)


def test_the_numbers_at_common_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for limit in (400, 1024, 20_000):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        for_logs = files(limit)
        share = connection_budget.share_of_plugins(for_logs)
        found[limit] = (
            share,
            connection_budget.most_of_plugins(for_logs),
            connection_budget.most_of_clients(for_logs, 0),
            connection_budget.most_of_clients(for_logs, share),
        )
    assert found == {
        400: (80, 80, 100, 100),
        1024: (256, 448, 512, 256),
        20_000: (5_000, 10_000, 10_000, 5_000),
    }
