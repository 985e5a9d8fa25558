"""Where records of `perf produce` come from: which host a registry is asked at, and when the schema evolves. The rest
is tested with the command."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr.cli.perf import sources
from leafcuttr.cli.perf.sources import Evolution
from leafcuttr_sdk.records import Record

GIVEN: dict[str, Any] = {
    "value_format": None,
    "topic": "t",
    "seed": 5,
    "schema_evolution_interval": 3,
    "distinct": 2,
    "format_settings": (),
    "record_size": None,
}


class Making:
    """In the place of the formats of plugins: says what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], int]] = []

    def __call__(
        self, name: str, settings: list[str], topic: str, seed: int, wanted: int, distinct: int
    ) -> list[Record]:
        self.asked.append((name, dict(one.split("=", 1) for one in settings), seed))  # type: ignore[misc]
        assert (topic, wanted, distinct) == ("t", 2, 2)
        return [Record(b"%d.%d" % (seed - 5, number)) for number in range(2)]


@pytest.fixture
def making(monkeypatch: pytest.MonkeyPatch) -> Making:
    found = Making()
    monkeypatch.setattr(sources, "records_made", found)
    monkeypatch.delenv("LEAFCUTTR_SCHEMA_REGISTRY_URL", raising=False)
    return found


@pytest.mark.parametrize(
    "address, host",
    [
        ("localhost:9092", "localhost"),
        ("broker-1:9092,broker-2:9092", "broker-1"),
        ("broker-1", "broker-1"),
        ("[::1]:9092", "[::1]"),
        ("[::1]", "[::1]"),
        ("PLAINTEXT://broker-1:9092", "broker-1"),
        (" 10.0.0.1:9092 , x", "10.0.0.1"),
        ("", "localhost"),
    ],
)
def test_the_registry_is_at_the_host_of_the_broker(making: Making, address: str, host: str) -> None:
    Evolution(GIVEN, address)
    assert making.asked == [("avro", {"registry": f"http://{host}:8081", "generation": "0"}, 5)]


def test_what_is_given_goes_before(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {**GIVEN, "value_format": "own", "record_size": 70, "format_settings": ("registry=http://r",)}
    Evolution(given, "b:1")
    assert making.asked.pop() == ("own", {"registry": "http://r", "size": "70", "generation": "0"}, 5)
    monkeypatch.setenv("LEAFCUTTR_SCHEMA_REGISTRY_URL", "http://there")
    Evolution({**GIVEN, "format_settings": ("size=3",), "record_size": 70}, "b:1")
    assert making.asked.pop() == ("avro", {"size": "3", "generation": "0"}, 5)


def test_each_interval_has_a_generation(making: Making) -> None:
    sent: list[bytes] = []
    full = {4}

    def produce(topic: str, value: bytes, *arguments: Any, **more: Any) -> None:
        if len(sent) in full:  # there is no space once, and the record is queued again
            full.discard(len(sent))
            raise BufferError
        sent.append(value)

    queue = Evolution(GIVEN, "b:1").source(produce, "t", None)
    for number in range(8):
        try:
            queue(number)
        except BufferError:
            queue(number)
    assert sent == [b"0.0", b"0.1", b"0.0", b"1.1", b"1.0", b"1.1", b"2.0", b"2.1"]
    assert [each[1]["generation"] for each in making.asked] == ["0", "1", "2"]
