"""MirrorMaker 2's own classes, of connect-mirror 4.3.1, beside ours: keys, records, names, expressions."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from leafcuttr_forward.mm2.client_keys import CLIENT_KEYS
from leafcuttr_forward.mm2.entries import MIRROR, aliases
from leafcuttr_forward.mm2.keys import Kind
from leafcuttr_forward.mm2.patterns import java_pattern
from leafcuttr_forward.mm2.policy import ReplicationPolicy
from leafcuttr_forward.mm2.records import Checkpoint, Heartbeat, OffsetSync
from leafcuttr_sdk.types import TopicPartition
from support import jars, mirror_maker

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(600),
]
CLIENTS = {"p": "producer", "c": "consumer", "a": "admin"}
# Connect's own defaults of what MirrorMaker sets for its workers, or leaves to the pair in front of a key.
OTHER_DEFAULT = {"enabled", "header.converter", "target.cluster.alias", "bootstrap.servers"}


@pytest.fixture(scope="module")
def keys() -> dict[str, dict[str, tuple[str, str | None]]]:
    """By class and name the type and the default."""
    found: dict[str, dict[str, tuple[str, str | None]]] = {}
    for line in mirror_maker.ask("keys"):
        owner, name, kind, default = line.split("\t")
        found.setdefault(owner, {})[name] = (kind, None if default == "null" else default[1:])
    return found


def same(kind: Kind, ours: str | None, theirs: str | None) -> bool:
    if kind is Kind.LIST:
        return aliases(ours or "") == aliases((theirs or "").replace("class ", ""))
    return (ours or "") == (theirs or "")


def test_every_key_of_mirror_maker_is_in_the_table(
    keys: dict[str, dict[str, tuple[str, str | None]]],
) -> None:
    of_clients = {key.name: key for key in CLIENT_KEYS}
    mirror = {owner: table for owner, table in keys.items() if owner not in CLIENTS.values()}
    assert len(mirror) == 7
    for owner, table in mirror.items():
        for name, (kind, default) in table.items():
            key = MIRROR.get(name) or of_clients.get(name)
            assert key is not None, f"{owner} has {name}"
            assert key.kind.value == kind, (owner, name)
            if name not in OTHER_DEFAULT and name in MIRROR:
                assert same(key.kind, key.default, default), (owner, name, key.default, default)


def test_every_key_of_clients_is_in_the_table(
    keys: dict[str, dict[str, tuple[str, str | None]]],
) -> None:
    theirs = {name for role in CLIENTS.values() for name in keys[role]}
    assert {key.name for key in CLIENT_KEYS} == theirs
    for key in CLIENT_KEYS:
        roles = [role for letter, role in CLIENTS.items() if key.name in keys[role]]
        assert key.clients == "".join(letter for letter, role in CLIENTS.items() if role in roles), key.name
        kind, default = keys[roles[0]][key.name]
        assert key.kind.value == kind, key.name
        assert same(key.kind, key.default, default), (key.name, key.default, default)


def test_the_table_has_no_other_keys(keys: dict[str, dict[str, tuple[str, str | None]]]) -> None:
    theirs = {name for table in keys.values() for name in table}
    ours = {name for name in MIRROR if not name.startswith("lc.")}
    assert ours - theirs == {"cluster.name"}


RECORDS = [
    ("heartbeat", Heartbeat("edge", "hub", 1_700_000_000_000)),
    ("checkpoint", Checkpoint("readers", TopicPartition("edge.orders", 3), 17, 11, "m\u00e9")),
    ("sync", OffsetSync(TopicPartition("orders", 1), 5, 4)),
]


def test_they_read_what_we_write() -> None:
    lines = [f"{kind} {record.key().hex()} {record.value().hex()}" for kind, record in RECORDS]
    assert mirror_maker.ask("records", lines=lines) == [
        "Heartbeat{sourceClusterAlias=edge, targetClusterAlias=hub, timestamp=1700000000000}",
        "Checkpoint{consumerGroupId=readers, topicPartition=edge.orders-3, upstreamOffset=17, downstreamOffset=11, "
        "metadata=m\u00e9}",
        "OffsetSync{topicPartition=orders-1, upstreamOffset=5, downstreamOffset=4}",
    ]


def test_we_read_what_they_write() -> None:
    kinds = {"heartbeat": Heartbeat, "checkpoint": Checkpoint, "sync": OffsetSync}
    found = [line.split(" ") for line in mirror_maker.ask("write")]
    read = [(kind, kinds[kind].parse(bytes.fromhex(key), bytes.fromhex(value))) for kind, key, value in found]
    assert read == RECORDS
    for (_, key, value), (_, record) in zip(found, RECORDS, strict=True):
        assert (key, value) == (record.key().hex(), record.value().hex())


TOPICS = [
    "orders",
    "edge.orders",
    "hub.edge.orders",
    "edge_orders",
    "heartbeats",
    "edge.heartbeats",
    "edge_hub_heartbeats",
    "myheartbeats",
    "a.",
    ".a",
    "..",
    "a..b",
    "x.internal",
    "x-internal",
    "x_internal",
    "mm2-offset-syncs.hub.internal",
    "mm2_x_internal",
    "edge_checkpoints_internal",
    "mm2--internal",
    "__consumer_offsets",
    "edge.checkpoints.internal",
]


@pytest.mark.parametrize("separator", [".", "_", "--"])
@pytest.mark.parametrize("identity", [False, True])
def test_names_of_topics(separator: str, identity: bool) -> None:
    policy = ReplicationPolicy("edge", identity, separator, separator)
    theirs = mirror_maker.ask("names", separator, str(identity).lower(), lines=TOPICS)
    for topic, line in zip(TOPICS, theirs, strict=True):
        ours = (
            policy.remote(topic),
            policy.source_of(topic) if policy.source_of(topic) is not None else "null",
            policy.upstream(topic) if policy.upstream(topic) is not None else "null",
            policy.original(topic),
            str(policy.is_heartbeats(topic)).lower(),
            str(policy.is_internal(topic)).lower(),
            policy.checkpoints_topic(),
            policy.offset_syncs_topic("hub"),
        )
        assert "\t".join(str(part) for part in ours) == line, topic


def cases() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "pattern_cases", Path(__file__).with_name("test_patterns.py")
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expressions() -> Iterator[tuple[str, str, bool]]:
    """The cases of `test_patterns` that are taken, one name each."""
    for given, fitting, others in cases().CASES:
        for name in [*(fitting or ()), *others] if fitting is not None and given else ():
            yield "|".join(given), name, bool(re.fullmatch(java_pattern(given), name))


def test_expressions_fit_what_they_fit_in_java() -> None:
    found = list(expressions())
    theirs = mirror_maker.ask("patterns", lines=[f"{expression}\t{name}" for expression, name, _ in found])
    assert len(found) > 50
    for (expression, name, ours), line in zip(found, theirs, strict=True):
        assert line == str(ours).lower(), (expression, name)
