"""What the comparison itself notices. Needs no Java: the answers are made here."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from parity import codec
from parity.allowed import ALLOWED, ANY, Allowed, verdict
from parity.compare import ASKED_AGAIN, MOST_ASKED_AGAIN, Difference, differences
from parity.scenario import ALL, scenario
from parity.side import CONCURRENT_TRANSACTIONS, Connection, Exchange, Side

Header = dict[str, Any] | None


def sides(
    kafka: Any, ours: Any, *, headers: tuple[Header, Header] = (None, None), request: Header = None
) -> tuple[Side, Side]:
    made = Side("kafka", 1, "p"), Side("ours", 2, "p")
    for side, answer, header in zip(made, (kafka, ours), headers, strict=True):
        side.exchanges.append(Exchange("case", "metadata", 12, answer, header, request))
    return made


def rows(kafka: Any, ours: Any) -> list[tuple[str, Any, Any]]:
    return [(row.path, row.kafka, row.ours) for row in differences(*sides(kafka, ours))]


A, B = {"name": "a", "value": 1}, {"name": "b", "value": 2}


def test_the_order_of_a_keyed_list_is_a_difference_of_its_own() -> None:
    assert rows({"topics": [A, B]}, {"topics": [A, B]}) == []
    assert rows({"topics": [A, B]}, {"topics": [B, A]}) == [("topics (order)", ["a", "b"], ["b", "a"])]
    (row,) = differences(
        *sides({"topics": [{"name": "a", "parts": [A, B]}]}, {"topics": [{"name": "a", "parts": [B, A]}]})
    )
    assert row.place == "topics[].parts (order)"


def test_the_order_of_plain_values_too() -> None:
    assert rows({"isr": [1, 2, 3]}, {"isr": [1, 2, 3]}) == []
    assert rows({"isr": [1, 2, 3]}, {"isr": [3, 1, 2]}) == [("isr (order)", ["1", "2", "3"], ["3", "1", "2"])]
    assert rows({"isr": [1, 2]}, {"isr": [1]}) == [("isr[2]", 2, "absent")]
    assert rows({"isr": [1, 1]}, {"isr": [1]}) == [("isr[1]", 1, "absent")]


@pytest.mark.parametrize(
    ("request_body", "as_asked"),
    [
        ({"topics": [{"topic": "b"}, {"topic": "x"}, {"topic": "a"}]}, True),
        ({"names": ["b", "a"]}, True),
        ({"outer": [{"inner": ["b", "a", "b"]}]}, True),
        ({"names": ["a", "b"]}, False),
        ({"names": ["b"], "others": ["a"]}, False),
        (None, False),
    ],
)
def test_an_order_that_is_arbitrary_in_kafka_can_be_that_of_the_request_in_ours(
    request_body: Header, as_asked: bool
) -> None:
    found = differences(*sides({"topics": [A, B]}, {"topics": [B, A]}, request=request_body))
    assert [row.as_asked for row in found] == [as_asked]
    assert Allowed("why", "metadata", "topics (order)").covers(found[0])
    assert Allowed("why", "metadata", "topics (order)", as_asked=True).covers(found[0]) == as_asked


def test_an_item_that_is_missing_does_not_change_the_order_of_the_others() -> None:
    assert rows([A, B], [B]) == [("[a]", A, "absent")]
    assert rows([A], [B, A]) == [("[b]", "absent", B)]


def test_items_with_the_same_key_are_compared_by_position() -> None:
    assert rows([A, A, B], [A, B, A]) == [
        ("[1].name", "a", "b"), ("[1].value", 1, 2), ("[2].name", "b", "a"), ("[2].value", 2, 1),
    ]  # fmt: skip


def test_headers_are_compared() -> None:
    good, late = {"correlation_id": 0}, {"correlation_id": -1}
    assert differences(*sides({}, {}, headers=(good, good))) == []
    (row,) = differences(*sides({}, {}, headers=(good, late)))
    assert (row.path, row.kafka, row.ours) == ("(header).correlation_id", 0, -1)
    (row,) = differences(*sides({}, {}, headers=(good, {**good, "unknown tag 7": "ff"})))
    assert (row.path, row.kafka, row.ours) == ("(header).unknown tag 7", "absent", "ff")
    (row,) = differences(*sides("connection closed", "connection closed", headers=(None, good)))
    assert (row.path, row.kafka, row.ours) == ("(header)", None, good)


@pytest.mark.parametrize(
    ("code", "most"), [(CONCURRENT_TRANSACTIONS, MOST_ASKED_AGAIN[CONCURRENT_TRANSACTIONS]), (15, 0)]
)
def test_answers_that_were_asked_again_are_bounded(code: int, most: int) -> None:
    kafka, ours = sides({}, {})
    kafka.asked_again["end_txn", code] = 100
    ours.asked_again["end_txn", code] = most
    assert differences(kafka, ours) == []
    ours.asked_again["end_txn", code] += 1
    (row,) = differences(kafka, ours)
    assert (row.api, row.case, row.path) == ("end_txn", ASKED_AGAIN, f"answers with error {code}")
    assert (row.kafka, row.ours) == (100, most + 1)
    assert verdict([row]) == ([row], set())


def test_an_allowance_names_a_field_and_may_name_values() -> None:
    entry = Allowed("why", "fetch", "responses[].error_code", "case", kafka=-1, ours=0)

    def row(path: str, kafka: Any = -1, ours: Any = 0, case: str = "case") -> Difference:
        return Difference("fetch", 4, case, path, kafka, ours)

    assert entry.covers(row("responses[t].error_code"))
    for other in (
        row("responses[t].high_watermark"),
        row("responses[t].error_code", ours=1),
        row("responses[t].error_code", kafka=None),
        row("responses[t].error_code", case="another"),
        row("error_code"),
    ):
        assert not entry.covers(other)


def test_no_allowance_is_for_a_whole_answer() -> None:
    for entry in ALLOWED:
        assert entry.reason
        # What Kafka does not have at all is absent as a whole.
        whole = entry.place.endswith((".*", "(answer)"))
        assert not whole or (entry.kafka is not ANY and entry.kafka == "absent"), entry
        assert entry.place.strip("*"), entry
        assert not entry.by_chance or entry.place.endswith("(order)"), entry


def test_a_scenario_can_be_run_with_other_settings_of_topics() -> None:
    declared = len(ALL)
    scenario("produce", versions=(3, 13), also_with={"full": {"some.setting": "full"}})(
        lambda side, version: None
    )
    plain, full = ALL[declared:]
    del ALL[declared:]
    assert (plain.topic_settings, full.topic_settings) == ({}, {"some.setting": "full"})
    assert (full.name, full.versions) == (f"{plain.name}-full", plain.versions)


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.parametrize(
    ("version", "tags", "expected"),
    [
        (9, b"\0", {"correlation_id": 2}),
        (9, b"\x01\x07\x02hi", {"correlation_id": 2, "unknown tag 7": "6869"}),
        (5, b"", {"correlation_id": 2}),
    ],
)
def test_a_connection_tells_how_far_the_correlation_id_is_off(
    peer: socket.socket, version: int, tags: bytes, expected: dict[str, Any]
) -> None:
    mine = Connection(*peer.getsockname())
    other, _ = peer.accept()
    with mine.socket, other:
        for _ in range(2):
            mine.post("metadata", version, {"topics": []})
        frames = []
        for correlation in (1, 4):
            body = codec.encode("metadata", version, {}, "response")
            head = struct.pack(">i", correlation) + (tags if correlation == 4 else b"\0" * (version == 9))
            frames.append(struct.pack(">i", len(head + body)) + head + body)
        other.sendall(b"".join(frames))
        mine.take("metadata", version)
        assert mine.header == {"correlation_id": 0}
        mine.take("metadata", version)
        assert mine.header == expected
