"""What a name that no user has looks like: as the users do, and steadily so."""

from __future__ import annotations

from collections import Counter

from leafcuttr.state.security.credential_shapes import CredentialShape, CredentialShapes, shape_of
from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism

SHA_256, SHA_512 = ScramMechanism
USUAL = CredentialShape(SHA_256, 8192, 24)
OTHER = CredentialShape(SHA_512, 4096, 25, has_text_salt=True)
NAMES = [f"user{number}" for number in range(1000)]


def test_the_shape_of_a_credential() -> None:
    assert shape_of(SHA_256, ScramCredential(b"\xff" * 24, b"k", b"v", 8192)) == USUAL
    assert shape_of(SHA_512, ScramCredential(b"0123456789abcdefghijklmn1", b"k", b"v", 4096)) == OTHER
    assert not shape_of(SHA_256, ScramCredential(b"Abc", b"k", b"v", 4096)).has_text_salt


def test_where_nobody_has_one_it_is_the_usual_one() -> None:
    shapes = CredentialShapes()
    assert shapes.chosen("a", b"s", USUAL) == USUAL
    shapes.count(OTHER, 1)
    assert shapes.chosen("a", b"s", USUAL) == OTHER
    shapes.count(OTHER, -1)
    assert shapes.chosen("a", b"s", USUAL) == USUAL


def test_each_is_chosen_as_often_as_users_have_it() -> None:
    shapes = CredentialShapes()
    shapes.count(USUAL, 30)
    shapes.count(OTHER, 10)
    chosen = {name: shapes.chosen(name, b"s", USUAL) for name in NAMES}
    assert 200 < Counter(chosen.values())[OTHER] < 300
    assert {name: shapes.chosen(name, b"s", USUAL) for name in NAMES} == chosen, "a name keeps its own"
    assert {name: shapes.chosen(name, b"t", USUAL) for name in NAMES} != chosen, "nobody else can tell which"
    shapes.count(USUAL, 1)
    changed = [name for name in NAMES if shapes.chosen(name, b"s", USUAL) != chosen[name]]
    assert len(changed) < 30, "one more user changes little"


def test_of_very_many_shapes_the_frequent_ones_count() -> None:
    shapes = CredentialShapes()
    shapes.count(USUAL, 2)
    for iterations in range(4096, 4196):
        shapes.count(CredentialShape(SHA_256, iterations, 24), 1)
    assert len({shapes.chosen(name, b"s", OTHER) for name in NAMES}) == 16


def test_any_name() -> None:
    shapes = CredentialShapes()
    shapes.count(USUAL, 1)
    for name in ("", "\0", "ü" * 10_000, "\ud800"):
        assert shapes.chosen(name, b"", OTHER) == USUAL
