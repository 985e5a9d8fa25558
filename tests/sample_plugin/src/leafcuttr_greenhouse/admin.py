"""What the plugin shows on the admin port."""

import json

from leafcuttr_greenhouse import latest_readings
from leafcuttr_sdk import AdminRoute, Broker, Finding, HealthCheck, MetricReading, Request, Response, gauge


def health_check(broker: Broker) -> HealthCheck:
    seen = latest_readings.of(broker)

    def look() -> Finding:
        hot = [sensor for sensor, celsius in seen.items() if celsius > 45]
        return Finding(not hot, f"sensor {hot[0]} is at {seen[hot[0]]:.1f} °C" if hot else "")

    return HealthCheck("sensors", "whether a sensor is too hot", look)


def sensors(broker: Broker) -> MetricReading:
    seen = latest_readings.of(broker)
    metric = gauge("leafcuttr_greenhouse_celsius", "The last temperature of each sensor.", "sensor")
    return MetricReading(metric, lambda: (((str(sensor),), celsius) for sensor, celsius in seen.items()))


def sensor(broker: Broker) -> AdminRoute:
    seen = latest_readings.of(broker)

    async def handler(request: Request) -> Response:
        known = {str(sensor): celsius for sensor, celsius in seen.items()}
        celsius = known.get(request.parameters["sensor"])
        return Response(json.dumps(celsius).encode(), status=404 if celsius is None else 200)

    return AdminRoute("/sensors/{sensor}", handler, "the last reading of one")


def latest(broker: Broker) -> AdminRoute:
    seen = latest_readings.of(broker)

    async def handler(request: Request) -> Response:
        wanted = request.query.get("sensor")
        shown = {sensor: celsius for sensor, celsius in seen.items() if not wanted or str(sensor) in wanted}
        return Response(json.dumps(shown).encode())

    return AdminRoute("/latest", handler, "the last reading of each sensor")
