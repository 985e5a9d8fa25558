"""What a node tells of itself and of the cluster: versions, features, log dirs, elections, producers."""

from __future__ import annotations

from typing import Any

from parity import codec
from parity.batches import batch
from parity.scenario import SERVED, scenario
from parity.side import Closed, Side

# The APIs that are answered here; what else Kafka announces comes later.
OURS = (
    0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26, 28, 32, 33, 34, 35, 37, 42, 43,
    44, 45, 46, 47, 55, 57, 60, 61, 64, 65, 66, 74, 75,
)  # fmt: skip


@scenario("api_versions")
def api_versions(side: Side, version: int) -> None:
    body = {"client_software_name": "parity", "client_software_version": "1.0"}
    answer = side.ask("api_versions", version, body, "all")
    if answer:
        answer["api_keys"] = [one for one in answer["api_keys"] if one["api_key"] in OURS]
        # The epoch counts metadata changes of the controller, which come in bursts.
        answer.pop("finalized_features_epoch", None)
    if version >= 3:
        for name in ("", "a b", "-a", "a" * 300, "é"):
            side.ask("api_versions", version, {**body, "client_software_name": name}, f"name {name[:5]!r}")
            kept = side.exchanges[-1].answer
            if isinstance(kept, dict):
                kept["api_keys"] = len(kept["api_keys"]) > 0
                kept.pop("finalized_features_epoch", None)


@scenario("api_versions", versions=(0,))
def unsupported(side: Side, version: int) -> None:
    """Too new an ApiVersions gets error 35 in version 0's form; any other unknown version closes the connection."""
    for asked in (5, 99, 32767):
        connection = side.connect()
        connection.raw(b"\0\x12" + asked.to_bytes(2, "big") + b"\0\0\0\7\0\6parity\0\1")
        frame = connection.take_raw()
        told = codec.decode("api_versions", 0, frame[4:])
        told["api_keys"] = [one for one in told["api_keys"] if one["api_key"] in OURS]
        side.note("api_versions", asked, f"version {asked}", {"correlation": frame[:4].hex(), **told})
    for api, key in sorted(codec.API_KEYS.items()):
        if key not in OURS or key == 18:
            continue
        served = SERVED.get(api, codec.versions(api))
        for asked in {served[0] - 1, served[-1] + 1, -1} - set(served):
            if api == "produce" and asked in (0, 1, 2):
                continue
            connection = side.connect()
            flexible = b"\0" if asked > served[-1] else b""
            head = (
                key.to_bytes(2, "big")
                + (asked & 0xFFFF).to_bytes(2, "big")
                + b"\0\0\0\1\0\6parity"
                + flexible
            )
            connection.raw(head + bytes(64))
            side.note(api, asked, "unsupported version", _end(connection))
            connection.close()
    for key in (-1, 4, 5, 6, 7, 62, 93, 1000):
        connection = side.connect()
        connection.raw((key & 0xFFFF).to_bytes(2, "big") + b"\0\0\0\0\0\1\0\6parity")
        side.note("api_versions", 0, f"api key {key}", _end(connection))
        connection.close()


@scenario("api_versions", versions=(0,))
def malformed(side: Side, version: int) -> None:
    frames = {
        "empty frame": b"",
        "three bytes": b"\0\x12\0",
        "no client id length": b"\0\x12\0\0\0\0\0\1",
        "client id longer than the frame": b"\0\x12\0\0\0\0\0\1\0\x50abc",
        "body cut short": b"\0\3\0\1\0\0\0\1\0\6parity\0\0",
        "array longer than the frame": b"\0\3\0\1\0\0\0\1\0\6parity\x7f\xff\xff\xff",
        "client id null": b"\0\x12\0\0\0\0\0\1\xff\xff",
        "bytes left over": b"\0\3\0\1\0\0\0\1\0\6parity\0\0\0\0\1\2\3\4",
    }
    for case, frame in frames.items():
        connection = side.connect()
        connection.raw(frame)
        side.note("api_versions", version, case, _end(connection))
        connection.close()
    for case, size in {"negative size": -5, "2 GiB claimed": 0x7FFFFFFF}.items():
        connection = side.connect()
        connection.socket.sendall((size & 0xFFFFFFFF).to_bytes(4, "big") + b"\0" * 20)
        side.note("api_versions", version, case, _end(connection))
        connection.close()


def _end(connection: Any) -> str:
    try:
        return "answered" if connection.take_raw() else "answered with nothing"
    except Closed:
        return "connection closed"
    except TimeoutError:
        return "no answer"


@scenario("describe_cluster")
def cluster(side: Side, version: int) -> None:
    for operations in (False, True):
        body = {
            "include_cluster_authorized_operations": operations,
            "endpoint_type": 1,
            "include_fenced_brokers": False,
        }
        side.ask("describe_cluster", version, body, f"operations {operations}")
    if version >= 1:
        for kind in (0, 2, 9):
            side.ask("describe_cluster", version, {"endpoint_type": kind}, f"endpoint type {kind}")
    if version >= 2:
        side.ask("describe_cluster", version, {"include_fenced_brokers": True}, "fenced ones too")


@scenario("describe_log_dirs")
def log_dirs(side: Side, version: int) -> None:
    topic = side.create("topic", 2)
    side.produce(topic, batch(["x"] * 10))

    def ask(case: str, name: str, *partitions: int) -> None:
        body = {"topics": [{"topic": name, "partitions": list(partitions)}]}
        side.ask("describe_log_dirs", version, body, case)

    ask("two partitions", topic, 0, 1)
    ask("one and one of none", topic, 0, 9)
    ask("unknown topic", side.name("unknown"), 0)
    ask("no partitions", topic)
    side.ask("describe_log_dirs", version, {"topics": []}, "no topics")
    answer = side.quiet("describe_log_dirs", version, {"topics": None})
    mine = [one for one in answer["results"][0]["topics"] if one["name"] == topic]
    side.note("describe_log_dirs", version, "all", {"topics": mine})


@scenario("alter_replica_log_dirs")
def move_replica(side: Side, version: int) -> None:
    topic = side.create("topic")

    def ask(case: str, path: str, name: str, partition: int) -> None:
        body = {"dirs": [{"path": path, "topics": [{"name": name, "partitions": [partition]}]}]}
        side.ask("alter_replica_log_dirs", version, body, case)

    here = side.quiet("describe_log_dirs", 4, {"topics": []})["results"][0]["log_dir"]
    ask("to where it is", here, topic, 0)
    ask("to an unknown directory", "/no/such/dir", topic, 0)
    ask("to a relative directory", "data", topic, 0)
    ask("unknown topic", here, side.name("unknown"), 0)
    ask("no such partition", here, topic, 9)
    ask("unknown both", "/no/such/dir", side.name("unknown"), 0)
    side.ask("alter_replica_log_dirs", version, {"dirs": []}, "nothing")


@scenario("elect_leaders")
def elect(side: Side, version: int) -> None:
    topic = side.create("topic", 2)

    def ask(case: str, name: str, *partitions: int, kind: int = 0) -> None:
        body = {"election_type": kind, "topic_partitions": [{"topic": name, "partitions": list(partitions)}]}
        side.ask("elect_leaders", version, {**body, "timeout": 5_000}, case)

    ask("preferred", topic, 0, 1)
    ask("no such partition", topic, 9)
    ask("unknown topic", side.name("unknown"), 0)
    ask("empty topic", "", 0)
    ask("no partitions", topic)
    ask("partition twice", topic, 0, 0)
    if version:
        ask("unclean", topic, 0, kind=1)
        ask("unknown kind", topic, 0, kind=5)
    side.ask("elect_leaders", version, {"election_type": 0, "topic_partitions": [], "timeout": 5_000}, "none")
    everything = {"election_type": 0, "topic_partitions": None, "timeout": 5_000}
    answer = side.ask("elect_leaders", version, everything, "all")
    results = answer.get("replica_election_results", [])
    answer["replica_election_results"] = [one for one in results if one["topic"] == topic]


@scenario("alter_partition_reassignments")
def reassign(side: Side, version: int) -> None:
    topic = side.create("topic")

    def ask(case: str, name: str, partition: int, replicas: list[int] | None, **more: Any) -> None:
        parts = [{"partition_index": partition, "replicas": replicas}]
        body = {"timeout": 5_000, "topics": [{"name": name, "partitions": parts}], **more}
        side.ask("alter_partition_reassignments", version, body, case)

    ask("to where it is", topic, 0, [1])
    ask("to a stranger", topic, 0, [7])
    ask("to both", topic, 0, [1, 7])
    ask("to nobody", topic, 0, [])
    ask("twice to one", topic, 0, [1, 1])
    ask("negative", topic, 0, [-1])
    ask("cancel what is not there", topic, 0, None)
    ask("no such partition", topic, 9, [1])
    ask("unknown topic", side.name("unknown"), 0, [1])
    ask("empty topic", "", 0, [1])
    ask("change of factor forbidden", topic, 0, [1], allow_replication_factor_change=False)
    side.ask("alter_partition_reassignments", version, {"timeout": 5_000, "topics": []}, "nothing")


@scenario("list_partition_reassignments")
def reassignments(side: Side, version: int) -> None:
    topic = side.create("topic")

    def ask(case: str, topics: Any) -> None:
        side.ask("list_partition_reassignments", version, {"timeout": 5_000, "topics": topics}, case)

    ask("all", None)
    ask("none", [])
    ask("one", [{"name": topic, "partition_indexes": [0]}])
    ask("no such partition", [{"name": topic, "partition_indexes": [9]}])
    ask("unknown topic", [{"name": side.name("unknown"), "partition_indexes": [0]}])


@scenario("describe_quorum")
def quorum(side: Side, version: int) -> None:
    def body(name: str, *partitions: int) -> dict[str, Any]:
        return {
            "topics": [{"topic_name": name, "partitions": [{"partition_index": at} for at in partitions]}]
        }

    answer = side.ask("describe_quorum", version, body("__cluster_metadata", 0), "the metadata's")
    for told in (told for topic in answer.get("topics", []) for told in topic["partitions"]):
        # Kafka elects anew on a machine that is slow for a moment.
        told["leader_epoch"] = "1 or more" if told["leader_epoch"] >= 1 else told["leader_epoch"]
    side.ask("describe_quorum", version, body("__cluster_metadata", 1), "no such partition")
    side.ask("describe_quorum", version, body(side.name("other"), 0), "another topic")
    side.ask("describe_quorum", version, {"topics": []}, "none")


@scenario("update_features")
def features(side: Side, version: int) -> None:
    def ask(case: str, name: str, level: int, kind: int = 1, **more: Any) -> None:
        one = {
            "feature": name,
            "max_version_level": level,
            "allow_downgrade": kind != 1,
            "upgrade_type": kind,
        }
        body = {"timeout": 5_000, "feature_updates": [one], "validate_only": False, **more}
        side.ask("update_features", version, body, case)

    ask("unknown feature", "no.such.feature", 1)
    ask("too high", "metadata.version", 9999)
    ask("negative", "metadata.version", -1)
    ask("empty name", "", 1)
    if version:
        ask("unknown kind", "metadata.version", 25, kind=9)
    side.ask(
        "update_features", version, {"timeout": 5_000, "feature_updates": [], "validate_only": False}, "none"
    )


@scenario("unregister_broker")
def unregister(side: Side, version: int) -> None:
    """Only ids of nobody: Kafka would forget itself, LeafCuttr always refuses."""
    side.ask("unregister_broker", version, {"broker_id": 77}, "a stranger")
    side.ask("unregister_broker", version, {"broker_id": -1}, "negative")


@scenario("init_producer_id")
def producer_id(side: Side, version: int) -> None:
    seen = {side.producer()["producer_id"]}

    def ask(case: str, name: str | None = None, timeout: int = 60_000, **more: Any) -> None:
        body = {"transactional_id": name, "transaction_timeout": timeout, **more}
        answer = side.ask("init_producer_id", version, body, case)
        if answer.get("producer_id", -1) >= 0:
            number, answer["producer_id"] = answer["producer_id"], "new"
            assert number not in seen, f"producer id {number} is given twice"
            seen.add(number)

    ask("new")
    ask("another")
    ask("timeout 0", timeout=0)
    ask("negative timeout", timeout=-1)
    ask("empty transactional id", "")
    if version >= 3:
        ask("an id without an epoch", producer_id=5)
        ask("an epoch without an id", producer_epoch=5)
        ask("both, unknown", producer_id=1 << 40, producer_epoch=3)


@scenario("describe_producers")
def producers(side: Side, version: int) -> None:
    topic = side.create("topic", 2)
    made = side.producer()
    fields = {"producer_id": made["producer_id"], "producer_epoch": made["producer_epoch"]}
    side.produce(topic, batch(["a", "b"], sequence=0, **fields))
    side.produce(topic, batch(["c"], sequence=2, **fields))

    def ask(case: str, name: str, *partitions: int) -> None:
        body = {"topics": [{"name": name, "partition_indexes": list(partitions)}]}
        answer = side.ask("describe_producers", version, body, case)
        parts = (part for told in answer.get("topics", []) for part in told["partitions"])
        for one in (one for part in parts for one in part["active_producers"]):
            one["producer_id"] = "the producer" if one["producer_id"] == made["producer_id"] else "another"

    ask("one producer and none", topic, 0, 1)
    ask("no such partition", topic, 9)
    ask("unknown topic", side.name("unknown"), 0)
    ask("impossible topic", "a/b", 0)
    ask("empty topic", "", 0)
    side.ask("describe_producers", version, {"topics": []}, "none")
