"""Names of Avro."""

import pytest

from leafcuttr_registry.avro.names import Name, fault, full_name, name_of


@pytest.mark.parametrize(
    ("text", "namespace", "name"),
    [
        ("A", None, Name("A", None)),
        ("A", "one", Name("A", "one")),
        ("A", "", Name("A", None)),
        ("two.A", "one", Name("A", "two")),
        ("one.two.A", None, Name("A", "one.two")),
        (".A", "one", Name("A", None)),
    ],
)
def test_a_name_and_its_namespace(text: str, namespace: str | None, name: Name) -> None:
    assert name_of(text, namespace) == name


def test_the_full_name() -> None:
    assert Name("A", None).full == "A"
    assert Name("A", "one.two").full == "one.two.A"
    assert [full_name("A", "one"), full_name("A", None), full_name("x.A", "one")] == ["one.A", "A", "x.A"]


def test_how_it_is_written_in_a_namespace() -> None:
    assert Name("A", "one").within("one") == "A"
    assert Name("A", "one").within("two") == "one.A"
    assert Name("A", "one").within(None) == "one.A"
    assert Name("A", None).within("one") == "A"
    # It would be read as the type.
    assert Name("string", "one").within("one") == "one.string"


@pytest.mark.parametrize("name", ["A", "_", "a1_", "Z9"])
def test_names(name: str) -> None:
    assert fault(name, strict=True) is None
    assert fault(name, strict=False) is None


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "a.b", "\n", "a\n", "$"])
def test_no_names(name: str) -> None:
    assert fault(name, strict=True)
    assert fault(name, strict=False)


def test_other_scripts_are_for_old_schemas() -> None:
    assert fault("größe", strict=True)
    assert fault("größe", strict=False) is None
