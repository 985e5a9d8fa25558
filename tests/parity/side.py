"""One of the two brokers under comparison, as a scenario sees it: ask, and what was answered is kept.

Setup steps (`create`, `settle`, `quiet`) are not compared; only `ask` and the answers taken with a case name are.
How often a step had to ask again because the broker said that it is not ready is counted (`asked_again`).
"""

from __future__ import annotations

import socket
import struct
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from parity import codec
from parity.codec import Body
from support.waiting import until

CLIENT_ID = "parity"
PATIENCE = 60.0  # seconds until a silent peer counts as one that does not answer
CONCURRENT_TRANSACTIONS = 51
Answer = dict[str, Any]


@dataclass(frozen=True)
class Exchange:
    """One compared answer. `answer` is a decoded body or, in words, why there is none; `request` what it answers, where
    that was a single one."""

    case: str
    api: str
    version: int
    answer: Answer | str
    header: Answer | None = None
    request: Body | None = None


class Closed(Exception):
    """The peer closed the connection instead of answering."""


class Connection:
    """One client connection. `post` sends, `take` waits for the next answer; one may post ahead.

    `header` is that of the last answer: its tags, and in place of the correlation id how far that is from the one of
    the request whose turn it was.
    """

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation = 0
        self.posted: deque[int] = deque()
        self.header: Answer | None = None

    def post(self, api: str, version: int, body: Body | bytes, *, client_id: str | None = CLIENT_ID) -> None:
        data = body if isinstance(body, bytes) else codec.encode(api, version, body)
        flexible = api_flexible(api, version)
        self.correlation += 1
        name = None if client_id is None else client_id.encode()
        head = struct.pack(
            ">hhih", codec.API_KEYS[api], version, self.correlation, -1 if name is None else len(name)
        )
        self.posted.append(self.correlation)
        self.raw(head + (name or b"") + (b"\0" if flexible else b"") + data)

    def raw(self, frame: bytes) -> None:
        """Sends one frame of any bytes, with its length in front. Raises Closed."""
        try:
            self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        except OSError as error:
            raise Closed(str(error)) from error

    def take_raw(self) -> bytes:
        """The next frame. Raises Closed, TimeoutError."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def take(self, api: str, version: int) -> Answer:
        """The next answer, decoded. Raises Closed, TimeoutError, AnswerError."""
        self.header = None
        header, body = codec.decode_header(api, version, self.take_raw())
        asked = self.posted.popleft()
        self.header = {**header, "correlation_id": header["correlation_id"] - asked}
        return codec.decode(api, version, body)

    def _exactly(self, size: int) -> bytes:
        got = bytearray()
        while len(got) < size:
            try:
                chunk = self.socket.recv(size - len(got))
            except ConnectionError as error:
                raise Closed(str(error)) from error
            if not chunk:
                raise Closed("end of stream")
            got += chunk
        return bytes(got)

    def close(self) -> None:
        self.socket.close()


def api_flexible(api: str, version: int) -> bool:
    known = codec.versions(api)
    cls = codec.entity(api, min(max(version, known[0]), known[-1]), "request")
    return bool(getattr(cls, "__flexible__"))  # noqa: B009


def error_codes(answer: Any) -> Iterator[int]:
    """Every error code in an answer that is not 0."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name == "error_code" and value:
                yield value
            else:
                yield from error_codes(value)
    elif isinstance(answer, list):
        for item in answer:
            yield from error_codes(item)


@dataclass
class Side:
    """A broker and one scenario's run against it. `prefix` makes names that no other run uses.

    `topic_settings` are given to every topic that `create` makes, where it says nothing else: settings that only this
    side knows.
    """

    host: str
    port: int
    prefix: str
    topic_settings: Mapping[str, str] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)  # generated value -> the name it has in both runs
    topic_ids: dict[str, str] = field(default_factory=dict)
    asked_again: Counter[tuple[str, int]] = field(default_factory=Counter)  # by API and error code
    _open: list[Connection] = field(default_factory=list)
    _settled: int = 0

    def name(self, hint: str) -> str:
        """A topic's or group's name of this run, the same on both sides."""
        return f"{self.prefix}.{hint}"

    def connect(self) -> Connection:
        connection = Connection(self.host, self.port)
        self._open.append(connection)
        return connection

    @property
    def main(self) -> Connection:
        """The connection that `ask` and `quiet` use; a new one after the peer closed it."""
        return self._open[0] if self._open else self.connect()

    def close(self) -> None:
        for connection in self._open:
            connection.close()
        self._open.clear()

    def ask(
        self, api: str, version: int, body: Body | bytes, case: str, on: Connection | None = None
    ) -> Answer:
        """Sends, waits and keeps the answer under `case`. An empty dictionary if there was none."""
        connection = on or self.main
        try:
            connection.post(api, version, body)
        except Closed:
            return self._keep(Exchange(case, api, version, "connection closed"), connection)
        return self.take(api, version, case, connection, None if isinstance(body, bytes) else body)

    def take(self, api: str, version: int, case: str, on: Connection, request: Body | None = None) -> Answer:
        """Keeps the next answer of a connection on which the request was posted before."""
        answer: Answer | str
        try:
            answer = on.take(api, version)
        except Closed:
            answer = "connection closed"
        except TimeoutError:
            answer = f"no answer within {PATIENCE} s"
        except (codec.AnswerError, UnicodeDecodeError, struct.error) as error:
            answer = f"not decodable: {error}"
        return self._keep(Exchange(case, api, version, answer, on.header, request), on)

    def note(self, api: str, version: int, case: str, answer: Answer | str) -> None:
        """Keeps something derived from an answer (the records of a fetch, decoded)."""
        self.exchanges.append(Exchange(case, api, version, answer))

    def _keep(self, exchange: Exchange, on: Connection) -> Answer:
        self.exchanges.append(exchange)
        if isinstance(exchange.answer, str):
            on.close()
            if on in self._open:
                self._open.remove(on)
            return {}
        return exchange.answer

    def quiet(self, api: str, version: int, body: Body) -> Answer:
        """Setup: asks on a connection and keeps nothing. Raises what goes wrong."""
        connection = self.main
        connection.post(api, version, body)
        return connection.take(api, version)

    def create(
        self,
        hint: str = "topic",
        partitions: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> str:
        """Makes a topic, waits until it is usable and returns its name; its id gets a label."""
        name = self.name(hint)
        chosen = {**self.topic_settings, **(configs or {})}
        settings = [{"name": key, "value": value} for key, value in chosen.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": settings}
        made = self.quiet("create_topics", 5, {"topics": [topic], "timeout": 10_000})["topics"][0]
        if made["error_code"]:
            raise RuntimeError(f"setup: {name} is not created: {made}")
        return self.known(name)

    def known(self, name: str) -> str:
        """Waits until the broker itself knows the topic and its leaders."""

        def look() -> Answer | None:
            body = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
            topic: Answer = self.quiet("metadata", 12, body)["topics"][0]
            if not any(error_codes(topic)):
                return topic
            self.asked_again.update({("metadata", code) for code in error_codes(topic)})
            return None

        topic = until(look, f"topic {name}", pause=0.01, growth=2)
        self.topic_ids[name] = topic["topic_id"]
        self.labels[topic["topic_id"]] = f"<id of {name}>"
        # Kafka tells of a leader a moment before that leader takes requests.
        parts = [{"partition_index": one["partition_index"], "timestamp": -1} for one in topic["partitions"]]
        body = {"replica_id": -1, "topics": [{"name": name, "partitions": parts}]}

        self.until("list_offsets", 4, body, lambda answer: not any(error_codes(answer)))
        return name

    def settle(self) -> None:
        """Waits until all metadata changes so far are in effect: Kafka's broker lags behind its controller."""
        self._settled += 1
        self.create(f"settled{self._settled}")

    def until(self, api: str, version: int, body: Body, met: Callable[[Answer], bool]) -> Answer:
        """Asks quietly until the answer is met (a group's state, a deletion that took effect)."""

        def look() -> Answer | None:
            answer = self.quiet(api, version, body)
            if met(answer):
                return answer
            self.asked_again.update({(api, code) for code in error_codes(answer)})
            return None

        return until(look, f"{api} {body}", pause=0.01, growth=2)

    def produce(self, topic: str, records: bytes, partition: int = 0) -> int:
        """Setup: appends one batch and returns its first offset."""
        part = {"index": partition, "records": records}
        data = [{"name": topic, "partition_data": [part]}]
        answer = self.quiet("produce", 9, {"acks": -1, "timeout": 10_000, "topic_data": data})
        result = answer["responses"][0]["partition_responses"][0]
        if result["error_code"]:
            raise RuntimeError(f"setup: nothing appended to {topic}: {result}")
        return int(result["base_offset"])

    def verify(self, wanted: bool) -> None:
        """Setup: whether the broker asks the coordinator about partitions that transactions write to."""
        name = "transaction.partition.verification.enable"
        change = {"name": name, "config_operation": 0, "value": str(wanted).lower()}
        resource = {"resource_type": 4, "resource_name": "", "configs": [change]}
        self.quiet("incremental_alter_configs", 1, {"resources": [resource], "validate_only": False})

    def producer(self) -> Answer:
        """Setup: a new producer id, with its epoch (Kafka's first one waits for a block of ids)."""
        body = {"transactional_id": None, "transaction_timeout": 60_000}
        return self.until("init_producer_id", 4, body, lambda answer: not answer["error_code"])

    def coordinator(self, group: str) -> str:
        """Setup: waits until the group's coordinator is ready (Kafka makes its offsets topic first)."""
        self.until(
            "find_coordinator", 3, {"key": group, "key_type": 0}, lambda answer: not answer["error_code"]
        )
        body = {"group_id": group, "topics": None}
        self.until("offset_fetch", 7, body, lambda answer: not answer["error_code"])
        return group
