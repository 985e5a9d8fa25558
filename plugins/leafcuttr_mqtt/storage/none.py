"""`NoStore`: nothing is kept (`mqtt.persistence.enable=false`). Sessions live as long as the process."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.session.types import Delivery
from leafcuttr_mqtt.storage.state import Recovered, SessionRecord, StoredSession, record_number

if TYPE_CHECKING:
    from leafcuttr_sdk import Appended, NewBatch
    from leafcuttr_sdk.errors import BrokerError


class NoStore:
    """As `store.Store`."""

    keeps: Final = False
    has_notes: Final = False
    is_gone: Final = False
    generation: Final = 0

    def __init__(self) -> None:
        self._next_session = 1

    async def open(self) -> Recovered:
        return Recovered()

    async def run(self) -> None:
        import trio

        await trio.sleep_forever()

    def overtaken(self) -> int | None:
        return None

    def place_of(self, offset: int) -> int:
        return offset

    async def create_again(self) -> frozenset[str]:
        return frozenset()

    def keep_only(self, sessions: Iterable[tuple[StoredSession, Iterable[int]]]) -> None:
        pass

    def note_queued_again(
        self, message: Message, receivers: Sequence[tuple[StoredSession, Delivery]]
    ) -> None:
        pass

    def begin_session(self, client_id: str) -> StoredSession:
        stored = StoredSession(client_id, self._next_session)
        self._next_session += 1
        return stored

    def note_session(self, record: SessionRecord) -> None:
        pass

    def note_will_done(self, client_id: str) -> None:
        pass

    def note_session_ended(self, stored: StoredSession, deliveries: Iterable[Delivery] = ()) -> None:
        pass

    def forget(self, deliveries: Iterable[Delivery]) -> None:
        pass

    def note_queued(self, message: Message, receivers: Sequence[tuple[StoredSession, Delivery]]) -> None:
        pass

    def note_delivered(self, stored: StoredSession, delivery: Delivery) -> None:
        pass

    def note_released(self, stored: StoredSession, delivery: Delivery) -> None:
        pass

    def begin_number(self, stored: StoredSession, number: int) -> int:
        return record_number(stored.number, number)

    def number_refused(self, stored: StoredSession, number: int) -> None:
        pass

    def note_received(self, stored: StoredSession, number: int, topics: tuple[str, ...] = ()) -> None:
        pass

    def number_done(self, stored: StoredSession, number: int) -> None:
        pass

    def note_completed(self, stored: StoredSession, packet_id: int) -> None:
        pass

    def note_retained(self, message: Message) -> None:
        pass

    def note_retained_ended(self, topic: str) -> None:
        pass

    def batches(self) -> "list[NewBatch]":
        return []

    def settle(self, answers: "Sequence[Appended | BrokerError]") -> bool:
        return True

    async def load(self, offsets: Iterable[int]) -> dict[int, Message]:
        return {}
