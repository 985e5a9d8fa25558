"""DescribeClientQuotas, AlterClientQuotas, and what changes of topics above a quota are answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parity.scenario import scenario
from parity.side import Answer, Connection, Side

EXACT, DEFAULT, SPECIFIED = range(3)
PRODUCER, CONSUMER, REQUEST, MUTATION, CONNECTION = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
Parts = Mapping[str, str | None]


def entry(parts: Parts, *ops: tuple[str, float | None]) -> dict[str, Any]:
    """None removes a quota."""
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in parts.items()],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops],
    }


def altering(*entries: dict[str, Any], validate_only: bool = False) -> dict[str, Any]:
    return {"entries": list(entries), "validate_only": validate_only}


def change(side: Side, *entries: dict[str, Any]) -> None:
    """Setup."""
    answer = side.quiet("alter_client_quotas", 1, altering(*entries))
    if any(one["error_code"] for one in answer["entries"]):
        raise RuntimeError(f"setup: {answer}")
    side.settle()


def asking(*components: tuple[str, int, str | None], strict: bool = False) -> dict[str, Any]:
    return {
        "components": [
            {"entity_type": kind, "match_type": match_type, "match": match}
            for kind, match_type, match in components
        ],
        "strict": strict,
    }


def described(answer: Answer) -> dict[str, Any]:
    """Entities and quotas by name: Kafka keeps both in hash tables."""
    return {
        ", ".join(sorted(f"{part['entity_type']}={part['entity_name']}" for part in one["entity"])): {
            each["key"]: each["value"] for each in one["values"]
        }
        for one in answer["entries"]
    }


@scenario("describe_client_quotas")
def filters(side: Side, version: int) -> None:
    user, client = side.name("user"), side.name("client")
    entities: list[Parts] = [
        {"user": user},
        {"client-id": client},
        {"user": user, "client-id": client},
        {"user": user, "client-id": None},
    ]
    change(side, *(entry(one, (PRODUCER, 1e9), (REQUEST, 1234.5)) for one in entities))
    for case, body in {
        "a user, whatever else": asking(("user", EXACT, user)),
        "a user alone": asking(("user", EXACT, user), strict=True),
        "a user with any client": asking(("user", EXACT, user), ("client-id", SPECIFIED, None)),
        "a user with the default client": asking(("user", EXACT, user), ("client-id", DEFAULT, None)),
        "a client, whatever else": asking(("client-id", EXACT, client)),
        "a client of a user": asking(("client-id", EXACT, client), ("user", EXACT, user), strict=True),
        "nobody": asking(("user", EXACT, side.name("nobody"))),
        "default users": asking(("user", DEFAULT, None), strict=True),
        "everything, strictly": asking(strict=True),
    }.items():
        answer = side.quiet("describe_client_quotas", version, body)
        head = {key: value for key, value in answer.items() if key != "entries"}
        side.note("describe_client_quotas", version, case, {**head, "found": described(answer)})
    change(side, *(entry(one, (PRODUCER, None), (REQUEST, None)) for one in entities))


@scenario("describe_client_quotas")
def refused_filters(side: Side, version: int) -> None:
    cases: dict[str, list[tuple[str, int, str | None]]] = {
        "an empty type": [("", EXACT, "u")],
        "a type twice": [("user", EXACT, "u"), ("user", SPECIFIED, None)],
        "an unknown type": [("host", EXACT, "u")],
        "an unknown match": [("user", 3, "u")],
        "no name": [("user", EXACT, None)],
        "a name for the default": [("user", DEFAULT, "u")],
        "a name for any": [("user", SPECIFIED, "u")],
        "an address and a user": [("ip", SPECIFIED, None), ("user", SPECIFIED, None)],
        "a client and an address": [("client-id", DEFAULT, None), ("ip", EXACT, "10.0.0.1")],
    }
    for case, components in cases.items():
        side.ask("describe_client_quotas", version, asking(*components), case)


@scenario("alter_client_quotas")
def changes(side: Side, version: int) -> None:
    """A set, a change, a removal; and what a change leaves alone."""
    user: Parts = {"user": side.name("user")}

    def shown(case: str) -> None:
        side.settle()
        body = asking(("user", EXACT, user["user"]))
        answer = side.quiet("describe_client_quotas", 1, body)
        side.note("alter_client_quotas", version, f"{case}: what is there", described(answer))

    cases: dict[str, list[tuple[str, float | None]]] = {
        "two": [(PRODUCER, 1e9), (REQUEST, 99.5)],
        "another value": [(PRODUCER, 2e9)],
        "a removal and one more": [(REQUEST, None), (MUTATION, 1e6)],
        "what is not there": [(CONSUMER, None)],
        "nothing": [],
        "an unknown one removed": [("x", None)],
        "the rest": [(PRODUCER, None), (MUTATION, None)],
    }
    for case, ops in cases.items():
        side.ask("alter_client_quotas", version, altering(entry(user, *ops)), case)
        shown(case)
    only = altering(entry(user, (PRODUCER, 1e9)), validate_only=True)
    side.ask("alter_client_quotas", version, only, "only validated")
    shown("only validated")


@scenario("alter_client_quotas")
def refused(side: Side, version: int) -> None:
    user: Parts = {"user": side.name("user")}
    cases: dict[str, tuple[Parts, list[tuple[str, float | None]]]] = {
        "no entity": ({}, [(PRODUCER, 1)]),
        "an unknown type": ({"host": "x"}, [(PRODUCER, 1)]),
        "an empty user": ({"user": ""}, [(PRODUCER, 1)]),
        "an empty client": ({"client-id": ""}, [(PRODUCER, 1)]),
        "an empty address": ({"ip": ""}, [(CONNECTION, 1)]),
        "an address and a user": ({"ip": "10.0.0.1", "user": "u"}, [(CONNECTION, 1)]),
        "no address": ({"ip": "no such host!"}, [(CONNECTION, 1)]),
        "a rate of connections of a user": (user, [(CONNECTION, 1)]),
        "bytes of an address": ({"ip": "10.0.0.1"}, [(PRODUCER, 1)]),
        "an unknown quota": (user, [("x", 1)]),
        "zero": (user, [(PRODUCER, 0)]),
        "less than zero": (user, [(REQUEST, -1)]),
        "half a byte": (user, [(PRODUCER, 1.5)]),
        "half a connection": ({"ip": "10.0.0.1"}, [(CONNECTION, 1.5)]),
        "too many bytes": (user, [(CONSUMER, 1e19)]),
        "too many connections": ({"ip": "10.0.0.1"}, [(CONNECTION, 2.0**31)]),
    }
    for case, (parts, ops) in cases.items():
        answer = side.quiet("alter_client_quotas", version, altering(entry(parts, *ops)))
        for one in answer["entries"]:  # Kafka keeps the parts in a hash table
            one["entity"].sort(key=lambda part: part["entity_type"])
        side.note("alter_client_quotas", version, case, answer)
    twice = altering(entry(user, (PRODUCER, 1e9), (PRODUCER, 2e9)))
    side.ask("alter_client_quotas", version, twice, "a quota twice")
    side.ask("alter_client_quotas", version, altering(), "no entries")
    again = altering(entry(user, (PRODUCER, 1e9)), entry(user, (PRODUCER, 2e9)))
    side.ask("alter_client_quotas", version, again, "an entity twice")
    side.settle()
    answer = side.quiet("describe_client_quotas", 1, asking(("user", EXACT, user["user"])))
    side.note("alter_client_quotas", version, "an entity twice: what is there", described(answer))
    change(side, entry(user, (PRODUCER, None)))


class Limited:
    """A client that may change one partition a second, and 11 at first."""

    def __init__(self, side: Side, rate: float = 1.0) -> None:
        self._side = side
        self._name = side.name("limited")
        change(side, entry({"client-id": self._name}, (MUTATION, rate)))
        self._on: Connection = side.connect()

    def ask(self, api: str, version: int, body: dict[str, Any], case: str) -> None:
        """The codes, and whether it has to wait: for how long is a matter of milliseconds."""
        self._on.post(api, version, body, client_id=self._name)
        answer = self._on.take(api, version)
        told = next(value for key, value in answer.items() if key in ("topics", "results", "responses"))
        result = {
            one["name"]: [one["error_code"], one.get("error_message") if one["error_code"] else None]
            for one in told
        }
        self._side.note(api, version, case, {"waits": answer["throttle_time"] > 0, "topics": result})
        if answer["throttle_time"]:
            # It is not read for so long: the next request goes over another connection.
            self._on = self._side.connect()

    def create(self, version: int, case: str, *topics: tuple[str, int], **more: Any) -> None:
        made = [
            {"name": self._side.name(hint), "num_partitions": count, "replication_factor": 1}
            for hint, count in topics
        ]
        self.ask("create_topics", version, {"topics": made, "timeout": 10_000, **more}, case)


@scenario("create_topics", range(5, 8))
def above_a_quota(side: Side, version: int) -> None:
    client = Limited(side)
    client.create(version, "within", ("a", 2))
    client.create(version, "above", ("b", 12), ("c", 30), ("d", 1))
    client.create(version, "again", ("e", 1))


@scenario("create_topics", range(6, 8))
def validated_above_a_quota(side: Side, version: int) -> None:
    client = Limited(side)
    client.create(version, "only validated", ("a", 30), validate_only=True)
    client.create(version, "above", ("b", 1))


@scenario("create_partitions", range(2, 4))
def growth_above_a_quota(side: Side, version: int) -> None:
    client, topic = Limited(side), side.create("grows")

    def grow(count: int, case: str) -> None:
        body = {"topics": [{"name": topic, "count": count, "assignments": None}], "timeout": 10_000}
        client.ask("create_partitions", version, {**body, "validate_only": False}, case)

    grow(41, "a large growth")
    grow(42, "above")


@scenario("delete_topics", range(4, 6))
def deletion_above_a_quota(side: Side, version: int) -> None:
    client = Limited(side)
    names = [side.create(f"gone{number}", partitions=20) for number in range(2)]
    for name in names:
        client.ask("delete_topics", version, {"topic_names": [name], "timeout": 10_000}, f"{name[-5:]}")
