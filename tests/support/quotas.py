"""A quota of a client id, for as long as a test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from leafcuttr.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from support.wire_client import WireClient


@contextmanager
def limited(wire: WireClient, client_id: str, quota: str, value: float) -> Iterator[None]:
    def change(*, remove: bool) -> None:
        entry = RequestEntryData(
            entity=[EntityData(entity_type="client-id", entity_name=client_id)],
            ops=[OpData(key=quota, value=value, remove=remove)],
        )
        request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
        assert wire.ask(request, 1).entries[0].error_code == 0

    change(remove=False)
    try:
        yield
    finally:
        change(remove=True)
