"""For whom a quota may be set, which quotas there are, and which of them holds for a client, in Kafka's order (KIP-55,
KIP-124, KIP-257, KIP-546, KIP-599, KIP-612). No I/O.
"""

import ipaddress
import json
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

LARGEST: Final[Mapping[str, float | None]] = {
    PRODUCER_BYTE_RATE: float(2**63),
    CONSUMER_BYTE_RATE: float(2**63),
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
    CONNECTION_CREATION_RATE: float(2**31 - 1),
}
"""Each quota with its largest value, if it has to be a whole number; None for one that may be any number."""
OF_CLIENTS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
"""In the order of the fields of `limits.ClientLimits`."""
OF_ADDRESSES: Final = (CONNECTION_CREATION_RATE,)

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Its parts, as type and name, sorted by type. The name None is the default: all that have no quota of their own."""


class QuotaHolder(NamedTuple):
    """Who shares one quota: all connections of a user, of a client id, or of the two together. An empty name counts
    for nothing."""

    user: str
    client_id: str


def plain_address(text: str) -> str | None:
    """An IP address in one form only, whatever kind of socket it comes from; None if it is none."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def entity_of(parts: Mapping[str, str | None]) -> QuotaEntity:
    return tuple(sorted(parts.items()))


def stored_form(entity: QuotaEntity) -> str:
    return json.dumps(dict(entity), ensure_ascii=False)


def from_stored_form(text: str) -> QuotaEntity:
    return entity_of(json.loads(text))


def in_order(user: str, client_id: str | None) -> Iterator[tuple[QuotaEntity, QuotaHolder]]:
    """The entities that may have a quota for this client, the most specific first, each with who shares that quota. As
    in Kafka, a client without an id has none of those that name client ids."""
    own, every_user = (USER, user), (USER, None)
    if not client_id:
        yield (own,), QuotaHolder(user, "")
        yield (every_user,), QuotaHolder(user, "")
        return
    named, every_client = (CLIENT_ID, client_id), (CLIENT_ID, None)
    yield (named, own), QuotaHolder(user, client_id)
    yield (every_client, own), QuotaHolder(user, client_id)
    yield (own,), QuotaHolder(user, "")
    yield (named, every_user), QuotaHolder(user, client_id)
    yield (every_client, every_user), QuotaHolder(user, client_id)
    yield (every_user,), QuotaHolder(user, "")
    yield (named,), QuotaHolder("", client_id)
    yield (every_client,), QuotaHolder("", client_id)
