"""What the registry counts while it runs. The server counts requests (`leafcuttr_sdk.web`), the broker what validators
refuse."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker

VALID = "valid"
INVALID = "invalid"
COMPATIBLE = "compatible"
INCOMPATIBLE = "incompatible"
TOO_COMPLEX = "too complex"


class CheckCounts:
    """Schemas that were read, or compared with others. A restarted registry goes on where it was."""

    def __init__(self, broker: "Broker") -> None:
        metrics = broker.metrics
        self._checks = metrics.counter(
            "leafcuttr_registry_checks_total",
            "Schemas that were read (valid, invalid) or compared (compatible, incompatible); too complex: it "
            "took too long, or too much memory.",
            "format",
            "verdict",
        )
        self._seconds = metrics.histogram(
            "leafcuttr_registry_check_seconds",
            "Time of a check, with the wait for a worker process.",
            "format",
        )

    def judged(self, format: str, verdict: str) -> None:
        """`format` is a name that a format has: no client can make up another."""
        self._checks.add(1, format, verdict)

    def took(self, format: str, seconds: float) -> None:
        self._seconds.observe(seconds, format)


class RefusalCounts:
    """Requests that were answered with an error."""

    def __init__(self, broker: "Broker") -> None:
        self._refusals = broker.metrics.counter(
            "leafcuttr_registry_refusals_total",
            "Requests that were answered with an error, by its code in the answer.",
            "code",
        )

    def refused(self, code: int) -> None:
        self._refusals.add(1, str(code))
