"""What messages call a thing. What `help()` shows of the SDK's NamedTuples is in test_help.py."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from leafcuttr_sdk import HealthCheck, Record
from leafcuttr_sdk._described import kind_of


class Refusing(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise SystemExit(3)


class Refuses(metaclass=Refusing):
    @property
    def __class__(self) -> Any:
        raise SystemExit(4)

    @__class__.setter
    def __class__(self, _: Any) -> None: ...


class Choice(enum.Enum):
    A = 1


async def coroutine() -> None: ...


@pytest.mark.parametrize(
    ("thing", "kind"),
    [
        (None, "None"),
        ([], "a list"),
        (1, "an int"),
        (b"secret", "a bytes"),
        (Choice.A, "a Choice"),
        (Record(b""), "a Record"),
        (OSError(), "an OSError"),
        (type("Any", (), {})(), "an Any"),
        (type("", (), {})(), "a "),
        (type("X" * 1000, (), {})(), f"a {'X' * 100}"),
        (Record, "a type"),
        (Choice, "a type"),
        (int, "a type"),
        (type, "a type"),
    ],
    ids=lambda value: f"{value:.20}" if isinstance(value, str) else None,
)
def test_what_a_message_calls_a_thing(thing: object, kind: str) -> None:
    assert kind_of(thing) == kind


def test_what_its_class_says_of_itself_is_not_asked() -> None:
    assert kind_of(Refuses()) == "a Refuses"
    assert kind_of(Refuses) == "a type"


@pytest.mark.parametrize("cls", [Record, HealthCheck])
def test_a_class_of_the_sdk_is_a_type_in_every_message(cls: type) -> None:
    assert type(cls).__name__ == "type"
    with pytest.raises(TypeError, match="'type' and 'int'"):
        _ = cls < 1  # type: ignore[operator]
