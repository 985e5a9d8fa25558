"""The second service: the last readings over HTTP, with a stream of the new ones. It needs the extra `page`."""

import json

import trio

from leafcuttr_greenhouse import PAGE, latest_readings
from leafcuttr_sdk import Broker
from leafcuttr_sdk.web import ApiError, Application, Exchange, HttpServer, Routes, Serving, event_stream

_PAUSE_S = 0.2


class Page:
    def __init__(self, broker: Broker) -> None:
        self._seen = latest_readings.of(broker)
        self._server = HttpServer(broker, PAGE, name="greenhouse_page", title="the greenhouse's page")

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        await self._server.run(self._application, task_status=task_status)

    def _application(self, serving: Serving) -> Application:
        routes = Routes()
        routes.add("GET", "/sensors/{sensor}", self._sensor)
        routes.add("GET", "/sensors", self._follow)
        return Application(routes)

    async def _sensor(self, exchange: Exchange) -> None:
        sensor = exchange.parameters["sensor"]
        if not sensor.isdecimal() or int(sensor) not in self._seen:
            raise ApiError(404, f"There is no sensor {sensor!r}.")
        await exchange.reply({"celsius": self._seen[int(sensor)], "for": str(exchange.principal)})

    async def _follow(self, exchange: Exchange) -> None:
        told: dict[int, float] = {}
        async with event_stream(exchange) as events:
            while True:
                changed = {sensor: value for sensor, value in self._seen.items() if told.get(sensor) != value}
                if changed:
                    await events.send(json.dumps(changed), event="readings")
                    told.update(changed)
                await trio.sleep(_PAUSE_S)
