"""Sessions: how long they last, their wills, and what one of them takes in memory."""

from __future__ import annotations

import tracemalloc

import pytest

from leafcuttr_mqtt.packets.types import Connect, Properties, Version, Will
from leafcuttr_mqtt.session.conversation import Conversation
from leafcuttr_mqtt.session.limits import NEVER_S, ClientLimits, Limits, QueueLimits
from leafcuttr_mqtt.session.session import Session, filter_of
from leafcuttr_mqtt.session.types import Subscription


def session(expiry_s: int, will: Will | None = None) -> Session:
    new = Session("c", QueueLimits())
    new.connect(ClientLimits(), expiry_s=expiry_s, will=will, receive_maximum=None)
    assert new.connected
    return new


def will(delay_s: int | None) -> Will:
    return Will("w", b"", 0, False, Properties(will_delay_interval=delay_s))


@pytest.mark.parametrize(
    ("expiry_s", "ends_ms"), [(0, 1000), (5, 6000), (NEVER_S, None), (NEVER_S - 1, 4294967295000)]
)
def test_when_a_session_ends(expiry_s: int, ends_ms: int | None) -> None:
    """3.1.2.11.2"""
    new = session(expiry_s)
    assert new.ends_ms is None
    new.disconnect(1000)
    assert not new.connected
    assert new.ends_ms == ends_ms
    new.connect(ClientLimits(), expiry_s=expiry_s, will=None, receive_maximum=None)
    assert new.ends_ms is None


@pytest.mark.parametrize(
    ("expiry_s", "delay_s", "due_ms"),
    [(0, None, 1000), (0, 7, 1000), (5, None, 1000), (5, 3, 4000), (5, 7, 6000), (NEVER_S, 7, 8000)],
)
def test_when_a_will_is_due(expiry_s: int, delay_s: int | None, due_ms: int) -> None:
    """3.1.3.2.2, [MQTT-3.1.2-8]: after its delay, or at the end of the session."""
    new = session(expiry_s, will(delay_s))
    assert new.will_due_ms is None
    new.disconnect(1000)
    assert new.will_due_ms == due_ms
    new.connect(ClientLimits(), expiry_s=expiry_s, will=None, receive_maximum=None)
    new.disconnect(1000)
    assert new.will_due_ms is None, "[MQTT-3.1.3-9]"


def test_filters_are_as_they_were_sent() -> None:
    assert filter_of(Subscription("a/#", 1)) == "a/#"
    assert filter_of(Subscription("a/#", 1, "group")) == "$share/group/a/#"


def test_an_idle_session_takes_little() -> None:
    """With its conversation at most 2.5 KB."""
    limits = Limits()

    def made(count: int) -> list[tuple[Conversation, Session]]:
        found = []
        for _ in range(count):
            conversation = Conversation(limits)
            conversation.receive([Connect(Version.V5, "c", True, 60)])
            new = Session("c", limits.queue)
            conversation.accept(new, present=False)
            found.append((conversation, new))
        return found

    made(10)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = made(200)
    each = (tracemalloc.get_traced_memory()[0] - before) / len(kept)
    tracemalloc.stop()
    assert 100 < each <= 2500
