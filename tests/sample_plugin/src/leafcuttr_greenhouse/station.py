"""The service: a listener that takes readings by line, answers each with its offset, and follows its own topic."""

from functools import partial

import trio

from leafcuttr_greenhouse import PREFIX, TOKEN, TOPIC, latest_readings
from leafcuttr_greenhouse.reading import decode, parse
from leafcuttr_sdk import LATEST, Broker, BrokerError, TopicPartition

_LONGEST = 1000


class Station:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topic = broker.settings.text(TOPIC)
        self._token = broker.settings.optional_text(TOKEN)
        self._lines = broker.metrics.counter(
            "leafcuttr_greenhouse_lines_total", "Lines of stations.", "answer"
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        await self._broker.topics.ensure(self._topic)
        async with self._broker.listen(PREFIX, authenticates=self._token is not None) as door:
            listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(sock)) for sock in door.sockets]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._follow)
                await nursery.start(partial(trio.serve_listeners, self._serve, listeners))
                self._broker.logger.info("stations are answered on port %d", door.port)
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

    async def _serve(self, stream: trio.SocketStream) -> None:
        rest = b""
        known = self._token is None
        async with stream:
            try:
                async for data in stream:
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        if not known:
                            known = line.decode("utf-8", "replace") == self._token
                            if not known:
                                return
                            continue
                        await stream.send_all(await self._answer(line))
                    if len(rest) > _LONGEST:
                        return
            except trio.BrokenResourceError:
                pass

    async def _answer(self, line: bytes) -> bytes:
        try:
            reading = parse(line.decode("utf-8", "replace"))
            key = str(reading.sensor).encode()
            produced = await self._broker.produce(self._topic, reading.encode(), key)
        except (ValueError, BrokerError) as error:
            self._lines.add(1, "refused")
            return f"error: {error}\n".encode()
        self._lines.add(1, "stored")
        return f"{produced.partition}-{produced.offset}\n".encode()
