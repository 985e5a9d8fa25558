"""The filter: keeps, drops, routes and changes."""

from leafcuttr_greenhouse import HIGHEST, LOWEST, ZONE
from leafcuttr_greenhouse.reading import decode
from leafcuttr_sdk import DROP, DeadLetter, Record, TopicContext, Verdict


class Plausible:
    def __init__(self, context: TopicContext) -> None:
        self._lowest = context.topic_settings.float(LOWEST)
        self._highest = context.topic_settings.float(HIGHEST)
        self._zones = context.settings.family(ZONE)

    def filter(self, record: Record) -> Verdict:
        if record.value is None:
            return record
        try:
            reading = decode(record.value)
        except ValueError as error:
            return DeadLetter(str(error))
        if reading.celsius < self._lowest:
            return DROP
        zone = self._zones.get(str(reading.sensor))
        if zone is not None:
            record = record._replace(headers=(*record.headers, ("zone", str(zone).encode())))
        if not reading.celsius <= self._highest:
            return DeadLetter(f"{reading.celsius:.1f} °C is above {self._highest:.1f}", record=record)
        return record
