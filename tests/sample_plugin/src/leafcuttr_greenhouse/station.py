"""The service: a listener that takes readings by line, answers each with its offset, and follows its own topic. Where
`lc.plugin.greenhouse.auth` is sasl, the first lines of a connection are an exchange of steps."""

from functools import partial

import trio

from leafcuttr_greenhouse import PREFIX, TOPIC, WEBSOCKET, latest_readings
from leafcuttr_greenhouse.reading import decode, parse
from leafcuttr_sdk import (
    LATEST,
    Authenticated,
    Broker,
    BrokerError,
    ByteStream,
    Challenge,
    Listening,
    ProducerFullError,
    Record,
    TopicPartition,
    act_for,
)

_LONGEST = 1000


class Station:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topic = broker.settings.text(TOPIC)
        self._authentication = broker.authentication(PREFIX)
        self._lines = broker.metrics.counter(
            "leafcuttr_greenhouse_lines_total", "Lines of stations.", "answer"
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        await self._broker.topics.ensure(self._topic)
        serve = partial(self._broker.serve, authenticates=self._authentication.required)
        async with self._broker.producer() as self._producer, trio.open_nursery() as nursery:
            nursery.start_soon(self._follow)
            listening: Listening = await nursery.start(serve, PREFIX, self._serve)
            if self._broker.settings.int(f"{WEBSOCKET}.port") >= 0:
                from leafcuttr_sdk import websocket

                await nursery.start(
                    partial(websocket.serve, authenticates=self._authentication.required, path="/stations"),
                    self._broker,
                    WEBSOCKET,
                    self._serve,
                )
            self._broker.logger.info("stations are answered on port %d", listening.port)
            task_status.started()

    async def _follow(self) -> None:
        """Keep the last reading of each sensor, whichever way it came."""
        seen = latest_readings.of(self._broker)
        partition = TopicPartition(self._topic, 0)
        positions = await self._broker.offsets({partition: LATEST})
        while True:
            fetched = await self._broker.fetch(positions, wait_s=60)
            positions = fetched.positions
            for record in fetched.records:
                if record.value is not None:
                    sensor, celsius = decode(record.value)
                    seen[sensor] = celsius

    async def _serve(self, stream: ByteStream) -> None:
        lines = Lines(stream)
        if self._authentication.required and not await self._identify(stream, lines):
            return
        async for line in lines:
            await stream.send_all(await self._answer(line))

    async def _identify(self, stream: ByteStream, lines: "Lines") -> bool:
        """Whether the station has proved who it is. From here on this task acts for it."""
        exchange = self._authentication.begin(self._authentication.mechanisms[0])
        outcome = await exchange.step(b"")
        while isinstance(outcome, Challenge):
            await stream.send_all(outcome.data + b"\n")
            line = await anext(lines, None)
            if line is None:
                return False
            outcome = await exchange.step(line)
        if not isinstance(outcome, Authenticated):
            self._broker.logger.info("a station at %s was refused: %s", stream.peer, outcome.reason)
            return False
        act_for(outcome.principal)
        await stream.send_all(outcome.data + b"\n")
        return True

    async def _answer(self, line: bytes) -> bytes:
        try:
            reading = parse(line.decode("utf-8", "replace"))
            key = str(reading.sensor).encode()
            await self._producer.room()
            produced = await self._producer.send(self._topic, Record(reading.encode(), key))
        except (ValueError, BrokerError, ProducerFullError) as error:
            self._lines.add(1, "refused")
            return f"error: {error}\n".encode()
        self._lines.add(1, "stored")
        return f"{produced.partition}-{produced.offset}\n".encode()


class Lines:
    """The lines of a connection. A line that is too long ends them."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._lines: list[bytes] = []
        self._rest = b""

    def __aiter__(self) -> "Lines":
        return self

    async def __anext__(self) -> bytes:
        while not self._lines:
            data = await self._stream.receive_some()
            if not data or len(self._rest) > _LONGEST:
                raise StopAsyncIteration
            *self._lines, self._rest = (self._rest + data).split(b"\n")
        return self._lines.pop(0)
