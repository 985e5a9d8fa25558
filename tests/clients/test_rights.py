"""Clients that others wrote have the rights of whom they log in as, and no others, however they do so: each writes and
reads in a group what ACLs allow, and is refused the rest; sessions are short, so that they log in again; a quota holds
them up. `support.secured_duties` is the table of which client is tried in which way."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.quotas import limited
from support.scraper import values_of
from support.secured_broker import NAME, PRINCIPALS, SecuredBroker, secured_broker
from support.secured_clients import Fresh
from support.secured_duties import AGAIN, COUNT, EACH, LACKS, QUOTA, SILENT, TIMES
from support.secured_scene import Scene
from support.secured_ways import Way, cases

SESSION_S = 3
RATE = 50_000
WITHOUT_GROUP = ("kcat", "Kafka's Java tools")
"""Those whose group is not ours to name."""
LOGINS_AGAIN = "kafka_server_socketservermetrics_successful_reauthentication_total"
SESSIONS_OVER = "leafcuttr_expired_sessions_total"
THROTTLES = "leafcuttr_throttle_seconds_count"
pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]
Make = Callable[..., Scene]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(
        tmp_path_factory.mktemp("rights"),
        tokens=True,
        offsets_topic_num_partitions="1",
        group_initial_rebalance_delay_ms="0",
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:root",
        connections_max_reauth_ms=str(SESSION_S * 1000),
        listener_name_mtls_ssl_principal_mapping_rules=PRINCIPALS,
    ) as broker:
        _allow(broker)
        yield broker


def _allow(broker: SecuredBroker) -> None:
    """All that the scenes need, on names that begin so, to the user and to clients over TLS that have no name."""
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
        ResourceType,
    )

    wanted = [
        *((ResourceType.TOPIC, "topic", each) for each in ("WRITE", "READ", "CREATE")),
        # Java's console consumer makes the name of its group itself.
        *((ResourceType.GROUP, each, "READ") for each in ("group", "console-consumer")),
    ]
    acls = [
        AclBinding(
            kind,
            name,
            ResourcePatternType.PREFIXED,
            f"User:{user}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for kind, name, operation in wanted
        for user in (NAME, "ANONYMOUS")
    ]
    describes = (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, "User:ANONYMOUS", "*")
    acls.append(AclBinding(*describes, AclOperation.DESCRIBE, AclPermissionType.ALLOW))  # for the metrics
    admin = AdminClient(broker.administrator)
    for future in admin.create_acls(acls).values():
        future.result(60)


@pytest.fixture
def scene(secured: SecuredBroker, fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    # Java does not take a token from anywhere unless it is told so.
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={secured.token_url}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", allowed)

    def make(security: str, **more: object) -> Scene:
        names = {kind: fresh(kind) for kind in ("topic", "other", "group")}
        return Scene(secured, security, **names, folder=tmp_path, **more)  # type: ignore[arg-type]

    return make


def counted(secured: SecuredBroker, name: str) -> float:
    """A counter of the broker, over all of its listeners or quotas."""
    with urllib.request.urlopen(f"http://{secured.metrics}/metrics", timeout=60) as answer:
        found = values_of(answer.read().decode())
    return sum(value for key, value in found.items() if key[0] == name)


def written(secured: SecuredBroker, topic: str) -> int:
    """How many records the broker has."""
    from confluent_kafka import Consumer, TopicPartition

    reader = Consumer({**secured.administrator, "group.id": "none"})
    end = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)[1]
    reader.close()
    return int(end)


def committed(secured: SecuredBroker, group: str, topic: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    reader = Consumer({**secured.administrator, "group.id": group})
    (found,) = reader.committed([TopicPartition(topic, 0)], timeout=60)
    reader.close()
    return int(found.offset)


@pytest.mark.parametrize(("client", "way", "security"), cases())
def test_rights(secured: SecuredBroker, scene: Make, client: str, way: Way, security: str) -> None:
    mine = scene(security)
    way.rights(mine)
    assert (end := written(secured, mine.topic)) >= COUNT
    if client not in WITHOUT_GROUP:
        assert committed(secured, mine.group, mine.topic) == end


@pytest.mark.parametrize(("client", "way", "security"), cases(AGAIN))
def test_logs_in_again(secured: SecuredBroker, scene: Make, client: str, way: Way, security: str) -> None:
    """Past the end of a session at least. A client that does not know of sessions loses its connection. One that a busy
    machine lets begin so late that it is done within a session goes on for longer."""
    again_before, over_before = counted(secured, LOGINS_AGAIN), counted(secured, SESSIONS_OVER)
    again = over = 0.0
    for sessions in (2.5, 10.0):
        mine = scene(security, seconds=sessions * SESSION_S)
        sent = way.again(mine)
        assert written(secured, mine.topic) == sent > 0
        again = counted(secured, LOGINS_AGAIN) - again_before
        over = counted(secured, SESSIONS_OVER) - over_before
        if again or over:
            break
    if AGAIN in LACKS.get(client, {}):
        assert again == 0 and over > 0
    else:
        assert again > 0 and over == 0


@pytest.mark.parametrize(("client", "way", "security"), cases(QUOTA))
def test_quota(
    secured: SecuredBroker, scene: Make, fresh: Fresh, client: str, way: Way, security: str
) -> None:
    mine = scene(security, client_id=fresh("slow"))
    before = counted(secured, THROTTLES)
    with secured.wire() as wire, limited(wire, mine.client_id, "producer_byte_rate", RATE):
        told = way.quota(mine)
    assert written(secured, mine.topic) == TIMES * EACH
    assert counted(secured, THROTTLES) > before
    if client in SILENT:
        assert told is None
    else:
        assert told is not None and told > 0
