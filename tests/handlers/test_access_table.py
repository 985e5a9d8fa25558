"""Every API, with and without each right of the table. Beside a Kafka: tests/parity/test_access.py."""

from __future__ import annotations

from collections import defaultdict

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import (
    CLUSTER_ACTION,
    CREATE_TOKENS_OF_USER,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOKEN,
    DESCRIBE_TOKENS_OF_USER,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
    DESCRIBE_TRANSACTION,
    WRITE_TOPIC,
    WRITE_TRANSACTION,
    Right,
    denied,
)
from leafcuttr.handlers.access_table import NEEDS
from leafcuttr.wire.api import APIS, ApiKey
from parity.access import Admin, Walk, settings
from parity.side import Side, error_codes
from support.broker_process import running_broker
from support.real_kafka import properties
from support.waiting import free_port

REFUSED = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)
# What a client without the right is not told by an error: something is left out, or it is of another version.
SILENT: frozenset[tuple[ApiKey, Right]] = frozenset(
    {
        (ApiKey.METADATA, DESCRIBE_CLUSTER),
        (ApiKey.DESCRIBE_CLUSTER, DESCRIBE_CLUSTER),
        (ApiKey.CREATE_TOPICS, DESCRIBE_TOPIC_CONFIGS),
        (ApiKey.DESCRIBE_TRANSACTIONS, DESCRIBE_TOPIC),
        (ApiKey.LIST_TRANSACTIONS, DESCRIBE_TRANSACTION),
        (ApiKey.FETCH, CLUSTER_ACTION),
        # A client that has not logged in is refused before.
        (ApiKey.CREATE_DELEGATION_TOKEN, CREATE_TOKENS_OF_USER),
        (ApiKey.DESCRIBE_DELEGATION_TOKEN, DESCRIBE_TOKEN),
        (ApiKey.DESCRIBE_DELEGATION_TOKEN, DESCRIBE_TOKENS_OF_USER),
        (ApiKey.ADD_PARTITIONS_TO_TXN, WRITE_TRANSACTION),
        (ApiKey.ADD_PARTITIONS_TO_TXN, WRITE_TOPIC),
    }
)
# Lists that leave out what may not be seen; what is refused before rights count.
UNREFUSED: frozenset[tuple[str, str]] = frozenset(
    {
        ("ALTER_CONFIGS", "of a kind that there is not"),
        ("CREATE_DELEGATION_TOKEN", "of another"),
        ("DESCRIBE_CLUSTER", "operations"),
        ("DESCRIBE_DELEGATION_TOKEN", "all"),
        ("DESCRIBE_TOPIC_PARTITIONS", "all"),
        ("INCREMENTAL_ALTER_CONFIGS", "of a kind that there is not"),
        ("LIST_GROUPS", "all"),
        ("LIST_TRANSACTIONS", "all"),
        ("METADATA", "all"),
        ("PRODUCE", "to none"),
        ("SYNC_GROUP", "without a protocol"),
    }
)
Codes = dict[tuple[str, ApiKey], set[int]]


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Codes:
    """The errors of the answers to each API in its newest version, by the rights of the client."""
    folder = tmp_path_factory.mktemp("access")
    port, admin_port, controller = free_port(), free_port(), free_port()
    file = properties(folder, port, controller)
    file.write_text("\n".join((file.read_text(), *settings(port, admin_port, controller), "")))
    found: Codes = defaultdict(set)
    with running_broker(folder, config=file):
        side, admin = Side("127.0.0.1", port, "access"), Admin("127.0.0.1", admin_port, "access")
        Walk(side, admin).run(lambda key: (APIS[key].max_version,))
        for one in side.exchanges:
            state, _, case = one.case.partition(": ")
            assert not isinstance(one.answer, str), (one.api, one.case, one.answer)
            refused = set(error_codes(one.answer))
            found[state, ApiKey[one.api.upper()]] |= refused
            if state == "nothing" and not refused & REFUSED:
                found[f"nothing: {case}", ApiKey[one.api.upper()]] = refused
        side.close()
        admin.close()
    return found


def test_every_api_is_in_the_table() -> None:
    assert list(NEEDS) == list(APIS)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("key", [key for key, needs in NEEDS.items() if needs], ids=lambda key: key.name)
def test_with_all_rights_nothing_is_refused_and_without_each_it_is(codes: Codes, key: ApiKey) -> None:
    assert not codes["everything", key] & REFUSED
    for need in NEEDS[key]:
        for right in need.rights:
            refused = codes[f"all but {right}", key] & REFUSED
            needed = len(need.rights) == 1 and (key, right) not in SILENT
            assert refused == ({right.error} if needed else set()), right
    silent = all((key, right) in SILENT for need in NEEDS[key] for right in need.rights) or key in (
        ApiKey.LIST_GROUPS,
    )
    assert bool(codes["nothing", key] & REFUSED) != silent


def test_what_a_client_without_rights_is_not_refused(codes: Codes) -> None:
    told = {(key.name, state.partition(": ")[2]) for state, key in codes if state.startswith("nothing: ")}
    assert told == UNREFUSED


@pytest.mark.parametrize(
    "right",
    dict.fromkeys(right for needs in NEEDS.values() for need in needs for right in need.rights),
    ids=str,
)
def test_the_error_of_a_right(right: Right) -> None:
    assert denied(right, "because").code == right.error
    assert denied(right, "because").message == "because"
    assert right.error in REFUSED and right.words.endswith("authorization failed.")
