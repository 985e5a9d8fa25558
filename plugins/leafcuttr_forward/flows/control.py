"""Requests to a flow: pause, resume, reset. They are records in the flow's topic at the target, so that they outlast
the process and reach it wherever it runs. Commands write them with `request`; the flow reads them with `Requests`.

    key     {"flow": name, "request": "state"}      value   {"state": "paused" | "running", "at": ms}
    key     {"flow": name, "request": "reset"}      value   {"to": ..., "at": ms}, a tombstone once it is carried out

`to` is `earliest`, `latest`, a time in ms, or a list of {"topic", "partition", "offset"}. A flow that is not paused
does not carry a reset out, but for one that it was resumed behind: it may not have run meanwhile, or its source was
away.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_forward.flows.positions import (
    REQUESTS,
    Standing,
    batch_of,
    ensure_topic,
    object_of,
    read_entries,
)
from leafcuttr_forward.flows.spec import FLOWS_TOPIC
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.peers import Peer

PAUSED: Final = "paused"
RUNNING: Final = "running"
ResetTo = str | int | Mapping[TopicPartition, int]
"""`earliest`, `latest`, a time in ms, or an offset for each of some partitions of the source."""


async def pause(target: "Peer", flow: str, now_ms: int) -> None:
    """The flow copies no more until `resume`. Raises BrokerError."""
    await request(target, _key(flow, "state"), {"state": PAUSED, "at": now_ms}, now_ms)


async def resume(target: "Peer", flow: str, now_ms: int) -> None:
    """Raises BrokerError."""
    await request(target, _key(flow, "state"), {"state": RUNNING, "at": now_ms}, now_ms)


async def reset(target: "Peer", flow: str, to: ResetTo, now_ms: int) -> None:
    """The flow, which is to be paused, goes on from there. Raises BrokerError."""
    value: Any = to
    if isinstance(to, Mapping):
        value = [
            {"topic": one.topic, "partition": one.partition, "offset": offset} for one, offset in to.items()
        ]
    await request(target, _key(flow, "reset"), {"to": value, "at": now_ms}, now_ms)


async def request(target: "Peer", key: bytes, value: Mapping[str, Any] | None, now_ms: int) -> None:
    """Write one request, or with None take it back. Raises BrokerError."""
    import json

    from leafcuttr_sdk.records import NewBatch

    partition = await requests_partition(target)
    text = None if value is None else json.dumps(value, separators=(",", ":")).encode()
    async with target.appender() as appender:
        (done,) = await appender.append([NewBatch(partition, batch_of({key: text}, now_ms))])
    if isinstance(done, Exception):
        raise done


async def requests_partition(target: "Peer") -> TopicPartition:
    """Where requests are: in a topic that was made with one partition beside the positions."""
    count = await ensure_topic(target)
    return TopicPartition(FLOWS_TOPIC, min(REQUESTS.partition, count - 1))


async def is_paused(target: "Peer", flow: str) -> bool:
    """Whether the flow is to be paused, for commands. Raises BrokerError."""
    requests = Requests(flow)
    requests.take_all(await read_entries(target, await requests_partition(target)))
    return requests.paused


class Requests:
    """What is requested of one flow now."""

    def __init__(self, flow: str) -> None:
        self._state_key = _key(flow, "state")
        self.reset_key: Final = _key(flow, "reset")
        self._standing = Standing()
        self.paused = False
        self.reset: ResetTo | None = None
        self._is_resumed = False
        """Behind the reset."""

    @property
    def holds(self) -> bool:
        """Whether the flow copies nothing now: it is paused, or has a reset to carry out before it goes on."""
        return self.paused or (self._is_resumed and self.reset is not None)

    def take(self, data: bytes | bytearray | memoryview, position: int) -> bool:
        """The next batches of the topic; whether anything has changed for this flow."""
        self._standing.take(data, position)
        return self.take_all(self._standing.entries)

    def take_all(self, entries: Mapping[bytes, bytes]) -> bool:
        """The last value by each key, in the order of their records; whether anything has changed."""
        before = (self.paused, self.reset, self._is_resumed)
        state = object_of(entries.get(self._state_key, b"")) or {}
        self.paused = state.get("state") == PAUSED
        asked = object_of(entries.get(self.reset_key, b"")) or {}
        self.reset = _reset_of(asked.get("to"))
        own = [key for key in entries if key in (self._state_key, self.reset_key)]
        self._is_resumed = own == [self.reset_key, self._state_key] and not self.paused
        return before != (self.paused, self.reset, self._is_resumed)


def _reset_of(to: Any) -> ResetTo | None:
    if to in ("earliest", "latest") or (type(to) is int and to >= 0):
        found: ResetTo = to
        return found
    if not isinstance(to, list):
        return None
    offsets: dict[TopicPartition, int] = {}
    for one in to:
        match one:
            case {"topic": str(topic), "partition": int(partition), "offset": int(offset)} if offset >= 0:
                offsets[TopicPartition(topic, partition)] = offset
            case _:
                return None
    return offsets


def _key(flow: str, what: str) -> bytes:
    import json

    return json.dumps({"flow": flow, "request": what}, separators=(",", ":"), ensure_ascii=False).encode()
