"""Every number of every request at both ends of its type, in every version: an answer comes, and nothing is raised.

The requests are made from their declarations, so that an API that is added later is tried too. One number is odd at a
time, the rest is what makes a request go as far as it can: names of things that are there, one element in each array.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leafcuttr.wire.api import APIS, Api
from leafcuttr.wire.emit import present_fields
from leafcuttr.wire.schema import INT8, INT16, INT32, INT64, Array, FieldSpec, PrimitiveType, declaration
from support import librdkafka
from support.live_broker import LiveBroker, live_broker
from support.logs import NOW, batch
from support.wire_client import WireClient

NUMBERS = (INT8, INT16, INT32, INT64)
TEXTS = {
    "topic": "t",
    "name": "t",
    "group_id": "g",
    "group": "g",
    "transactional_id": "x",
    "v3_and_below_transactional_id": "x",
    "member_id": "",
    "topics": "t",
    "groups": "g",
    "groups_names": "g",
    "transactional_ids": "x",
    "key": "g",
    "protocol_type": "consumer",
}
USUAL = {"partition_max_bytes": 1 << 20, "max_bytes": 1 << 20, "acks": 1, "session_timeout_ms": 10_000}

# A fetch that wants more than there is, or as long as it takes.
WAITS = {("Fetch", "min_bytes"), ("Fetch", "max_wait_ms")}
_WAITS_S = 0.2


def odd(cls: type[Any], version: int) -> Iterator[tuple[tuple[str, ...], int]]:
    """The path to each number in a message, with each of its ends."""
    for spec in (*present_fields(cls, version)[0], *present_fields(cls, version)[1]):
        element = spec.type.element if isinstance(spec.type, Array) else spec.type
        if element in NUMBERS:
            bits = element.size * 8  # type: ignore[union-attr]
            for value in (-(1 << bits - 1), -1, (1 << bits - 1) - 1):
                yield (spec.name,), value
        elif not isinstance(element, PrimitiveType):
            for path, value in odd(element, version):
                yield (spec.name, *path), value


def made(cls: type[Any], version: int, path: tuple[str, ...], value: int, topic_id: bytes) -> Any:
    plain, tagged = present_fields(cls, version)
    given: dict[str, Any] = {}
    for spec in (*plain, *tagged):
        rest = path[1:] if path and path[0] == spec.name else None
        given[spec.name] = _field(spec, version, rest, value, topic_id)
    return cls(**given)


def _field(spec: FieldSpec, version: int, path: tuple[str, ...] | None, value: int, topic_id: bytes) -> Any:
    element = spec.type.element if isinstance(spec.type, Array) else spec.type
    if not isinstance(element, PrimitiveType):
        one = made(element, version, path or (), value, topic_id)
    elif path is not None:
        one = value
    elif element.name == "string":
        one = TEXTS.get(spec.name, "" if spec.default is None else spec.default or "")
    elif element.name == "uuid":
        one = topic_id
    elif element.name == "records":
        one = bytes(batch(1, timestamp=NOW))
    else:
        one = USUAL.get(spec.name, element.default if isinstance(spec.type, Array) else spec.default)
    return [one] if isinstance(spec.type, Array) else one


def replaced(message: Any, **changed: Any) -> Any:
    kept = {spec.name: getattr(message, spec.name) for spec in declaration(type(message)).fields}
    return type(message)(**{**kept, **changed})


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    settings = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    with live_broker(tmp_path_factory.mktemp("live") / "data", settings) as broker:
        librdkafka.create(broker.address, "t")
        yield broker


@pytest.mark.one_in(12)
@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_numbers_at_their_ends(live: LiveBroker, api: Api, caplog: pytest.LogCaptureFixture) -> None:
    for version in range(api.min_version, api.max_version + 1):
        for number, (path, value) in enumerate(odd(api.request, version)):
            found = live.broker.topics.find("t")
            if found is None:  # DeleteTopics has been tried
                librdkafka.create(live.address, "t")
                found = live.broker.topics.by_name["t"]
            asked = made(api.request, version, path, value, found.id)
            if api.name == "JoinGroup":  # each its own: the time of sessions stands still here
                asked = replaced(asked, group_id=f"g-{version}-{number}")
            what = f"{api.name} v{version} {'.'.join(path)}={value}"
            with WireClient(live.address) as client:
                client.socket.settimeout(_WAITS_S if (api.name, path[-1]) in WAITS else 60.0)
                try:
                    client.ask(asked, version)
                except TimeoutError:
                    assert (api.name, path[-1]) in WAITS, f"{what}: no answer"
                except ConnectionError:
                    pytest.fail(f"{what}: the connection was closed")
    bad = [record.getMessage() for record in caplog.records if record.exc_info]
    assert not bad, bad
