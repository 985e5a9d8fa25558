"""Which MQTT broker runs in a broker: what the hooks of the admin port and of metrics look at. Several brokers may run
in one process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from leafcuttr_mqtt.server.running import Running
    from leafcuttr_sdk.broker import Broker

_RUNNING: Final["WeakKeyDictionary[Broker, Running]"] = WeakKeyDictionary()


@contextmanager
def shown(broker: "Broker", running: "Running") -> Iterator[None]:
    """While it runs it is there for people."""
    _RUNNING[broker] = running
    try:
        yield
    finally:
        del _RUNNING[broker]


def running_of(broker: "Broker") -> "Running | None":
    """None: it is starting, or has failed."""
    return _RUNNING.get(broker)
