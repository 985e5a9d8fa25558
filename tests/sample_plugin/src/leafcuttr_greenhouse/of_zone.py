"""The filters that a person names by settings, one for each zone."""

from leafcuttr_greenhouse import ZONE
from leafcuttr_greenhouse.reading import decode
from leafcuttr_sdk import DROP, DeadLetter, Record, Routed, TopicContext, Verdict


class OfZone:
    """Keeps the readings of its zone. Those of other zones go to the topics of these, where records can be routed, and
    are dropped elsewhere."""

    def __init__(self, zone: str, context: TopicContext) -> None:
        self._zone = zone
        self._zones = context.settings.family(ZONE)
        self._routes = context.routes

    def filter(self, record: Record) -> Verdict:
        try:
            zone = self._zones.get(str(decode(record.value or b"").sensor))
        except ValueError as error:
            return DeadLetter(str(error))
        if zone == self._zone:
            return record
        return Routed(record, f"zone-{zone}") if zone is not None and self._routes else DROP
