"""The last reading of each sensor, for each broker that runs in this process."""

from weakref import WeakKeyDictionary

from leafcuttr_sdk import Broker

_of: "WeakKeyDictionary[Broker, dict[int, float]]" = WeakKeyDictionary()


def of(broker: Broker) -> dict[int, float]:
    """The same for the hooks and the service of one broker."""
    return _of.setdefault(broker, {})
