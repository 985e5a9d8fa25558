"""Whether the broker is well: a table of checks, to which plugins may add their own at the start.

A check that is `required` decides whether the broker is ready to serve; any other that is not fine makes it degraded:
it serves, and an operator should see to it. A check is synchronous and quick: it reports what is known already.
"""

from collections.abc import Callable, Iterable, Mapping

from leafcuttr.server.listener import Connections
from leafcuttr.state.broker import Broker
from leafcuttr_sdk.admin import Finding, HealthCheck

FINE = Finding(True)


class HealthTable:
    """All checks, in the order in which they were added, and behind them those that come and go."""

    def __init__(self) -> None:
        self._checks: dict[str, HealthCheck] = {}
        self._passing: Callable[[], Iterable[HealthCheck]] = tuple

    def add(self, check: HealthCheck) -> None:
        """Raises ValueError if there is one of that name."""
        if check.name in self._checks:
            raise ValueError(f"there is a health check {check.name!r} already")
        self._checks[check.name] = check

    def add_passing(self, checks: Callable[[], Iterable[HealthCheck]]) -> None:
        """`checks` gives those that there are at the time; none of them is required."""
        self._passing = checks

    def findings(self) -> Mapping[HealthCheck, Finding]:
        """Run all checks. One that raises is not fine."""
        return {check: _finding(check) for check in (*self._checks.values(), *self._passing())}

    def missing(self) -> list[str]:
        """The required checks that are not fine: why the broker is not ready."""
        return [check.name for check in self._checks.values() if check.required and not _finding(check).fine]


def _finding(check: HealthCheck) -> Finding:
    try:
        found = check.look()
        return (
            found if isinstance(found, Finding) else Finding(False, f"the check gave {found!r}, no Finding")
        )
    except Exception as error:
        return Finding(False, f"the check failed: {error}")


def broker_checks(broker: Broker, connections: Connections) -> HealthTable:
    """The broker's own checks."""
    table, logs = HealthTable(), broker.logs

    def serving() -> Finding:
        if connections.stopping:
            return Finding(False, "the broker is stopping")
        return FINE if broker.serving else Finding(False, "the broker is starting")

    def groups() -> Finding:
        return Finding(False, "committed offsets are being read") if broker.groups.loading else FINE

    def transactions() -> Finding:
        return Finding(False, "transactional ids are being read") if broker.transactions.loading else FINE

    def disk() -> Finding:
        return FINE if logs.refusal is None else Finding(False, f"clients may not produce: {logs.refusal}")

    def partitions() -> Finding:
        offline = [str(name) for name, log in logs.logs.items() if log.offline is not None]
        return Finding(False, _listed(offline, "offline")) if offline else FINE

    def coordinators() -> Finding:
        failed = broker.groups.failed, broker.transactions.failed
        if not any(failed):
            return FINE
        return Finding(
            False, f"{failed[0]} partitions of groups and {failed[1]} of transactions cannot be read"
        )

    def dead_letters() -> Finding:
        trouble = broker.dead_letters.trouble
        lost = [f"{name} ({reason})" for name, reason in trouble.items()]
        return Finding(False, _listed(lost, "dead letters are lost to")) if lost else FINE

    def chains() -> Finding:
        closed, failing = list(broker.chains.closed), list(broker.chains.failing)
        if closed:
            return Finding(False, _listed(closed, "without their filters, taking no records"))
        if failing:
            return Finding(False, _listed(failing, "their filters fail on every batch"))
        waiting = list(broker.chains.waiting)
        return Finding(False, _listed(waiting, "not ready")) if waiting else FINE

    def cleaner() -> Finding:
        given_up = [str(name) for name in logs.cleaner.uncleanable]
        return Finding(False, _listed(given_up, "left aside until the next start")) if given_up else FINE

    def plugins() -> Finding:
        out = [one.name for one in broker.plugged.found if one.left_out]
        return Finding(False, _listed(out, "left out")) if out else FINE

    for check in (
        HealthCheck(
            "serving", "services of plugins have been started and listeners are open", serving, required=True
        ),
        HealthCheck("groups", "committed offsets have been read", groups, required=True),
        HealthCheck("transactions", "transactional ids have been read", transactions, required=True),
        HealthCheck("disk", "the disk has free space for what clients produce", disk),
        HealthCheck("partitions", "no partition is offline", partitions),
        HealthCheck("coordinators", "no internal partition is unreadable", coordinators),
        HealthCheck("cleaner", "compaction has given up no partition", cleaner),
        HealthCheck("dead-letters", "what filters send to dead-letter topics gets there", dead_letters),
        HealthCheck(
            "filters",
            "every topic has the filters and validators that it names, and they are ready and work",
            chains,
        ),
        HealthCheck("plugins", "every plugin that is installed and switched on is there", plugins),
    ):
        table.add(check)
    return table


def _listed(names: list[str], what: str) -> str:
    shown = ", ".join(names[:5])
    return f"{what}: {shown}" + (f" and {len(names) - 5} more" if len(names) > 5 else "")
