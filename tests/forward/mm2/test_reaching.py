"""Which addresses are this broker's."""

from __future__ import annotations

import socket

import pytest

from leafcuttr_forward.mm2.reaching import is_here
from leafcuttr_sdk.cluster import Endpoint

LISTENERS = [
    Endpoint("PLAINTEXT", "PLAINTEXT", "edge.example.org", 9092),
    Endpoint("SSL", "SSL", "10.0.0.7", 9093),
]


@pytest.mark.parametrize(
    ("servers", "here"),
    [
        ("localhost:9092", True),
        ("127.0.0.1:9093", True),
        ("[::1]:9092", True),
        ("EDGE.example.org:9092", True),
        ("10.0.0.7:9093", True),
        ("edge.example.org", True),
        ("PLAINTEXT://localhost:9092", True),
        ("hub:9092, localhost:9092", True),
        (f"{socket.gethostname()}:9092", True),
        ("localhost:19092", False),
        ("10.0.0.7:9092", False),
        ("hub:9092", False),
        ("hub", False),
        ("localhost:port", False),
        ("", False),
    ],
)
def test_an_address(servers: str, here: bool) -> None:
    assert is_here(servers, LISTENERS) is here


def test_without_listeners_nothing_is() -> None:
    assert not is_here("localhost:9092", [])
