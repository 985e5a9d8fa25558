"""LeafCuttr: a Kafka-compatible event broker in one process.

Importing this package does no work. `open_broker` and `run_broker` run a broker inside another program; what they need
is imported at their first use.
"""

from typing import TYPE_CHECKING, Any

from leafcuttr.version import __version__

if TYPE_CHECKING:
    from leafcuttr.embedded import BrokerThread, EmbeddedBroker, open_broker, run_broker

__all__ = ["BrokerThread", "EmbeddedBroker", "__version__", "open_broker", "run_broker"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from leafcuttr import embedded

    return getattr(embedded, name)
