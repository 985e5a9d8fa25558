"""What a conformance check has checked, and what it has found."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast


class Check(NamedTuple):
    """One thing that was checked. `problems` are lines for the author: what is wrong, and what to do."""

    name: str
    """A word or two, stable: `verdicts`, `any thread`."""
    promise: str
    """What the contract says, in one line."""
    problems: tuple[str, ...] = ()


class Report(NamedTuple):
    """All that was checked of one object of a plugin."""

    kind: str
    """`record filter`, `produce validator`, `service`..."""
    subject: str
    """Its name, or that of its class."""
    checks: tuple[Check, ...]

    @property
    def problems(self) -> list[str]:
        return [problem for check in self.checks for problem in check.problems]

    @property
    def fine(self) -> bool:
        return not any(check.problems for check in self.checks)

    def raise_problems(self) -> None:
        """Raises ContractError if there are any."""
        if not self.fine:
            raise ContractError(self)


class ContractError(AssertionError):
    """An object of a plugin does not keep its contract. The text has every problem that was found."""

    def __init__(self, report: Report) -> None:
        self.report = report
        lines = [f"the {report.kind} {report.subject} does not keep its contract:"]
        for check in report.checks:
            lines += [f"  - {check.name}: {problem}" for problem in check.problems]
        super().__init__("\n".join(lines))


class Notes:
    """Collects problems while an object is checked; the same one for many records is told once."""

    def __init__(self, kind: str, subject: str, promises: Mapping[str, str]) -> None:
        self._kind = kind
        self._subject = subject
        self._promises = promises
        self._found: dict[str, dict[str, list[str]]] = {}

    def add(self, check: str, problem: str, where: str = "") -> None:
        """`problem` has a `{}` where it says for which records, if `where` names one."""
        assert check in self._promises, check
        self._found.setdefault(check, {}).setdefault(problem, []).append(where)

    def report(self, done: Iterable[str] | None = None) -> Report:
        """`done`: the checks that were come to; without it all."""
        wanted = frozenset(self._promises if done is None else done)
        checks = [
            Check(
                name,
                self._promises[name],
                tuple(
                    problem.format(_all_of(places)) if any(places) else problem
                    for problem, places in self._found.get(name, {}).items()
                ),
            )
            for name in self._promises
            if name in wanted
        ]
        return Report(self._kind, self._subject, tuple(checks))


def _all_of(places: list[str]) -> str:
    more = len(places) - 1
    return places[0] if not more else f"{places[0]} (and {more} other record{'s'[: more > 1]})"


def literally(text: str) -> str:
    """Text that may have braces of its own, for `Notes.add`."""
    return text.replace("{", "{{").replace("}", "}}")


def told(error: BaseException) -> str:
    """An exception in one short line; of a group the first one in it."""
    while isinstance(error, BaseExceptionGroup):
        inside = cast("tuple[BaseException, ...]", error.exceptions)  # pyright: ignore[reportUnknownMemberType]
        error = inside[0]
    text = str(error).partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
