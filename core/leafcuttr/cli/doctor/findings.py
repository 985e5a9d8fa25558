"""What a check finds, and how a table of checks is run. This module does not know what is checked.

A check is a function of one subject (a broker as seen from this machine, or a configuration on it) that yields
findings. Checks are in a table (`remote.checks`, `local.checks`) in the order in which one builds on another; what an
earlier one has learnt it leaves in the subject. More checks, a plugin's for example, are more rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

S = TypeVar("S")


class DoctorSeverity(StrEnum):
    """How bad it is. Only a PROBLEM makes the command end with status 1."""

    FINE = "fine"
    SKIPPED = "skipped"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """What was seen, why it matters, and the lines to change (or to run), best first."""

    severity: DoctorSeverity
    seen: str
    why: str = ""
    change: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()
    """The checks without which this one could not be made."""


def fine(seen: str) -> DoctorFinding:
    return DoctorFinding(DoctorSeverity.FINE, seen)


def skipped(why: str) -> DoctorFinding:
    return DoctorFinding(DoctorSeverity.SKIPPED, why)


def warning(seen: str, why: str, *change: str) -> DoctorFinding:
    return DoctorFinding(DoctorSeverity.WARNING, seen, why, change)


def problem(seen: str, why: str, *change: str) -> DoctorFinding:
    return DoctorFinding(DoctorSeverity.PROBLEM, seen, why, change)


@dataclass(frozen=True, slots=True)
class DoctorCheck(Generic[S]):
    """One row of a table. Without the checks that it `needs`, each free of problems, it is skipped."""

    name: str
    look: Callable[[S], Iterable[DoctorFinding]]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A finding and the name of its check."""

    check: str
    finding: DoctorFinding

    def as_json(self) -> dict[str, Any]:
        one = self.finding
        return {
            "check": self.check,
            "severity": one.severity.value,
            "seen": one.seen,
            "why": one.why,
            "change": list(one.change),
        }


def examine(checks: Sequence[DoctorCheck[S]], subject: S) -> Iterator[CheckResult]:
    """Run the checks of a table; every check yields at least one finding.

    A check that fails is a finding too: one bad check, maybe a plugin's, must not hide what the others see.
    """
    unusable: set[str] = set()
    for check in checks:
        missing = [name for name in check.needs if name in unusable]
        if missing:
            unusable.add(check.name)
            words = f"skipped, because of {', '.join(missing)}"
            yield CheckResult(check.name, DoctorFinding(DoctorSeverity.SKIPPED, words, unmet=tuple(missing)))
            continue
        findings = list(_look(check, subject))
        if any(one.severity is DoctorSeverity.PROBLEM for one in findings):
            unusable.add(check.name)
        for one in findings:
            yield CheckResult(check.name, one)


def _look(check: DoctorCheck[S], subject: S) -> Iterator[DoctorFinding]:
    try:
        yield from check.look(subject)
    except Exception as error:
        yield problem(
            f"the check itself failed: {type(error).__name__}: {error}",
            "What it checks is not known.",
            "report this line together with the command",
        )
