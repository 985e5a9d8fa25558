"""The table of normative statements, the tests that name them, and the page that has both."""

from __future__ import annotations

from collections import Counter

from mqtt.conformance.statements import BINDS, PAGE, VERSIONS, page, read_statements, read_tests


def test_the_table_has_all_statements_once() -> None:
    """As many as appendix B of each specification has."""
    statements = read_statements()
    assert Counter(one.version for one in statements) == {"3.1.1": 141, "5.0": 251}
    assert len({one.key for one in statements}) == len(statements)
    assert {one.version for one in statements} == set(VERSIONS)
    assert {one.binds for one in statements} == set(BINDS)
    assert all(one.demand for one in statements)


def test_each_statement_that_binds_a_server_has_a_test() -> None:
    tests = read_tests()
    missing = [one.key for one in read_statements() if one.binds != "client" and one.key not in tests]
    assert not missing


def test_no_test_names_a_statement_that_is_none() -> None:
    known = {one.key for one in read_statements()}
    tests = read_tests()
    assert len(tests) > 300
    assert not {key: names for key, names in tests.items() if key not in known}


def test_a_test_of_a_statement_for_clients_is_none() -> None:
    """What binds clients only says nothing of a broker."""
    clients = {one.key for one in read_statements() if one.binds == "client"}
    assert not {key: names for key, names in read_tests().items() if key in clients}


def test_the_page_is_what_it_is_made_from() -> None:
    assert PAGE.read_text() == page(), "PYTHONPATH=tests python -m mqtt.conformance.statements"
