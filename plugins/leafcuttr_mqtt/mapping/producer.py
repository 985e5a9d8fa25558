"""librdkafka's producer for trio: idempotent, with acks=all. It calls back on a thread; what it says is told on the
loop's, which never waits for the network."""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

if TYPE_CHECKING:
    import logging

    from confluent_kafka import KafkaError

    from leafcuttr_sdk.records import Headers

MESSAGE_TIMEOUT_MS: Final = 10_000
"""How long a message is tried. After it its publisher is held back, and tries again."""
_CLOSE_S: Final = 3.0
_POLL_S: Final = 0.2


class DeliveryError(NamedTuple):
    """A record is not stored."""

    code: int
    """Of Kafka, or one below 0 of librdkafka."""
    text: str


Told = Callable[["DeliveryError | None"], None]
"""Called on the loop's thread: None once the record is stored."""


class ClusterProducer:
    """Records on their way to a cluster. `run` has to be running."""

    def __init__(
        self,
        servers: str,
        client_id: str,
        properties: Mapping[str, str],
        max_bytes: int,
        logger: "logging.Logger",
    ) -> None:
        """`max_bytes` is how much of records may be under way."""
        self._configuration: Final[dict[str, Any]] = {
            "queue.buffering.max.kbytes": max(max_bytes // 1024, 1024),
            "queue.buffering.max.messages": 100_000,
            "linger.ms": 1,
            "compression.type": "none",
            **properties,
            "bootstrap.servers": servers,
            "client.id": client_id,
            "acks": "all",
            "enable.idempotence": True,
            "partitioner": "murmur2_random",  # Java's for keys
            "message.timeout.ms": MESSAGE_TIMEOUT_MS,
            "error_cb": self._on_error,
            "logger": logger,
        }
        self._logger = logger
        self._producer: Any = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._told: deque[tuple[Told, DeliveryError | None]] = deque()
        self._stopping = threading.Event()
        self._fatal = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled; then what is under way is given a few seconds. Raises PluginError for properties that
        librdkafka does not take."""
        self._token = trio.lowlevel.current_trio_token()
        await self._renew()
        thread = threading.Thread(target=self._poll, name="mqtt-kafka", daemon=True)
        thread.start()
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            self._stopping.set()
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(thread.join)
                self._tell()

    def send(
        self, topic: str, key: bytes | None, value: bytes, headers: "Headers", time_ms: int, told: Told
    ) -> None:
        """Take a record without waiting. `told` is called once its outcome is known, unless `run` has ended."""

        def delivered(error: "KafkaError | None", _: object) -> None:
            self._told.append((told, None if error is None else _error(error)))

        try:
            self._producer.produce(
                topic, value, key, headers=list(headers), timestamp=time_ms, on_delivery=delivered
            )
        except BufferError:
            self._refuse(told, DeliveryError(-184, "too much is under way to the cluster"))
        except Exception as error:  # KafkaException, whose module is not imported here
            cause = error.args[0] if error.args and hasattr(error.args[0], "code") else None
            self._refuse(told, DeliveryError(-1, str(error)) if cause is None else _error(cause))

    def _refuse(self, told: Told, error: DeliveryError) -> None:
        self._told.append((told, error))
        if self._token is not None:
            self._token.run_sync_soon(self._tell, idempotent=True)

    async def _renew(self) -> None:
        from leafcuttr_sdk.errors import PluginError

        def make() -> Any:
            from confluent_kafka import Producer

            return Producer(self._configuration)

        try:
            self._producer = await trio.to_thread.run_sync(make)
        except Exception as error:
            # A KafkaError of librdkafka without its number, where it is one.
            words = getattr(error.args[0] if error.args else None, "str", None)
            why = words() if callable(words) else error
            raise PluginError(
                f"the client of the other Kafka cluster cannot be made: {why} (mqtt.kafka.property.*)"
            ) from None

    def _poll(self) -> None:
        """On the thread: call what librdkafka calls back."""
        while not self._stopping.is_set():
            self._producer.poll(_POLL_S)
            self._hand_over()
            if self._fatal:
                self._replace()
                self._fatal = False
        self._producer.flush(_CLOSE_S)
        self._hand_over()

    def _replace(self) -> None:
        """An idempotent producer that has lost its place is of no more use: its records are given up, and sent anew."""
        from confluent_kafka import Producer

        last, self._producer = self._producer, Producer(self._configuration)
        last.purge()
        last.flush(_CLOSE_S)

    def _hand_over(self) -> None:
        if self._told and self._token is not None:
            try:
                self._token.run_sync_soon(self._tell, idempotent=True)
            except trio.RunFinishedError:
                self._stopping.set()

    def _tell(self) -> None:
        """On the loop: what is known by now."""
        while self._told:
            told, error = self._told.popleft()
            told(error)

    def _on_error(self, error: "KafkaError") -> None:
        if error.fatal():
            self._fatal = True
            self._logger.warning("the client of the other Kafka cluster begins anew: %s", error.str())


def _error(error: "KafkaError") -> DeliveryError:
    return DeliveryError(error.code(), error.str())
