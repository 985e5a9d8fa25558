"""Clients of httpx share one TLS context in these tests, unless they say which."""

from __future__ import annotations

import ssl
from typing import Any

import httpx


def context_of(client: httpx.Client | httpx.AsyncClient) -> Any:
    transport: Any = client._transport
    return transport._pool._ssl_context


def test_clients_share_one() -> None:
    with httpx.Client() as one, httpx.Client() as other:
        assert context_of(one) is context_of(other)
        assert context_of(one) is context_of(httpx.AsyncClient())


def test_what_a_client_says_counts() -> None:
    given = ssl.create_default_context()
    with httpx.Client() as shared, httpx.Client(verify=given) as own, httpx.Client(verify=False) as none:
        assert context_of(own) is given
        assert context_of(none).verify_mode == ssl.CERT_NONE
        assert context_of(shared).verify_mode == ssl.CERT_REQUIRED
