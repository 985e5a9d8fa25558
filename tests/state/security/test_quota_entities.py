"""For whom a quota holds, in Kafka's order."""

from __future__ import annotations

import pytest

from leafcuttr.state.security.quota_entities import (
    QuotaHolder,
    entity_of,
    from_stored_form,
    in_order,
    plain_address,
    stored_form,
)

U, C = "user", "client-id"


def test_the_order_is_that_of_the_documentation_of_kafka() -> None:
    """`config/users/<user>/clients/<client-id>` first, the default client id last."""
    both, of_user, of_client = QuotaHolder("u", "c"), QuotaHolder("u", ""), QuotaHolder("", "c")
    assert list(in_order("u", "c")) == [
        (entity_of({U: "u", C: "c"}), both),
        (entity_of({U: "u", C: None}), both),
        (entity_of({U: "u"}), of_user),
        (entity_of({U: None, C: "c"}), both),
        (entity_of({U: None, C: None}), both),
        (entity_of({U: None}), of_user),
        (entity_of({C: "c"}), of_client),
        (entity_of({C: None}), of_client),
    ]


@pytest.mark.parametrize("client_id", [None, ""])
def test_a_client_without_an_id_has_no_quota_of_one(client_id: str | None) -> None:
    assert [entity for entity, _ in in_order("u", client_id)] == [entity_of({U: "u"}), entity_of({U: None})]


@pytest.mark.parametrize(
    "parts", [{U: "u"}, {U: None}, {C: 'a"b\\\n', U: "ü"}, {"ip": None}, {U: "<default>", C: None}]
)
def test_what_is_stored_is_read_again(parts: dict[str, str | None]) -> None:
    assert from_stored_form(stored_form(entity_of(parts))) == entity_of(parts)


def test_the_default_and_a_name_like_it_are_two() -> None:
    assert len({stored_form(entity_of({U: name})) for name in (None, "null", "<default>")}) == 3


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("localhost", None),
        ("", None),
    ],
)
def test_an_address_has_one_form(text: str, plain: str | None) -> None:
    assert plain_address(text) == plain
