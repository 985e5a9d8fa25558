"""The mutants of a small module: which there are, and which are left out."""

import pytest

pytest.importorskip("cosmic_ray", reason="cosmic-ray is in the session `mutants` only")

from mutants import report
from mutants.choice import chosen
from mutants.equivalents import Equivalent
from mutants.mutation import Mutant, mutants_of

SOURCE = '''
import logging

_log = logging.getLogger(__name__)
LIMIT = 5


class Thing:
    """A thing."""

    size: int = 0

    def take(self, at: int, count: int | None = None, *, force: bool = False) -> int:
        """Take it."""
        if at < 0 and not force:
            raise ValueError(f"at {at + 1} of {max(at, 2)}")
        _log.info("taking %d", at + 1)
        if force:
            _log.warning("by force")
        reach("thing.taken")
        self.size += 1
        notify(at, count, "a text")
        try:
            return min(at, 3)
        except (KeyError, OSError):
            pass
        for item in self:
            if item is None:
                continue
            del item.size
        return 0


def __repr__() -> str:
    return "a" + "b"
'''
HEAD = "def take(self, at: int, count: int | None = None, *, force: bool = False) -> int:"


def of(kind: str) -> set[tuple[str, str]]:
    return {(mutant.old, mutant.new) for mutant in mutants_of("m", SOURCE) if mutant.kind == kind}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("guard", {
            ("if at < 0 and not force:", "if False:"),
            ("if item is None:", "if False:"),
        }),
        ("statement", {
            ('raise ValueError(f"at {at + 1} of {max(at, 2)}")', "pass"),
            ("self.size += 1", "pass"),
            ('notify(at, count, "a text")', "pass"),
            ("del item.size", "pass"),
        }),
        ("comparison", {
            ("if at < 0 and not force:", "if at <= 0 and not force:"),
            ("if at < 0 and not force:", "if at >= 0 and not force:"),
            ("if item is None:", "if item is not None:"),
        }),
        ("arithmetic", {("return min(at, 3)", "return max(at, 3)")}),
        ("argument", {
            ('notify(at, count, "a text")', 'notify(count, at, "a text")'),
            ('notify(at, count, "a text")', 'notify(at, "a text", count)'),
            ('notify(at, count, "a text")', 'notify(None, count, "a text")'),
            ('notify(at, count, "a text")', 'notify(at, None, "a text")'),
        }),
        ("loop", {("for item in self:", "for item in []:"), ("continue", "break")}),
        ("exception", {
            ("except (KeyError, OSError):", "except (ZeroDivisionError, OSError):"),
            ("except (KeyError, OSError):", "except (KeyError, ZeroDivisionError):"),
        }),
    ],
)  # fmt: skip
def test_the_changes_of_each_kind(kind: str, expected: set[tuple[str, str]]) -> None:
    """None of a log line, of the arguments of an exception, of an annotation, or of what only logs."""
    assert of(kind) == expected


def test_booleans_and_constants() -> None:
    assert {new for old, new in of("boolean") if old == "if at < 0 and not force:"} == {
        "if not at < 0 and not force:",
        "if at < 0 and  force:",
        "if at < 0 or not force:",
    }
    assert (HEAD, HEAD.replace("False", "True")) in of("boolean")
    assert {old for old, _ in of("constant")} == {
        "if at < 0 and not force:",
        "return min(at, 3)",
        "return 0",
        "self.size += 1",
    }


def test_a_mutant_is_the_module_with_one_change() -> None:
    before = SOURCE.splitlines()
    for mutant in mutants_of("m", SOURCE):
        after = mutant.source(SOURCE).splitlines()
        changed = [number for number, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
        assert len(changed) == 1, mutant
        assert mutant.function == "Thing.take"


def test_places_that_read_alike_are_told_apart() -> None:
    source = "def f(a):\n    if a:\n        return 1\n    return 1\n"
    found = [(mutant.nth, mutant.new) for mutant in mutants_of("m", source) if mutant.old == "return 1"]
    assert sorted(found) == [(1, "return 0"), (1, "return 2"), (2, "return 0"), (2, "return 2")]


def test_the_choice_is_the_same_each_time_and_takes_every_kind() -> None:
    mutants = mutants_of("m", SOURCE)
    taken = chosen(mutants, 9, 0)
    assert len({mutant.kind for mutant in taken}) == 9
    assert taken == chosen(list(reversed(mutants)), 9, 0)
    assert taken != chosen(mutants, 9, 1)
    assert len(chosen(mutants, 1000, 0)) == len(mutants)


def test_a_survivor_is_printed_as_an_entry_and_an_entry_without_mutant_is_told() -> None:
    import tomllib

    def entry_of(mutant: Mutant) -> Equivalent:
        (entry,) = tomllib.loads(report.as_entry(mutant))["equivalent"]
        return Equivalent(**entry)

    mutants = mutants_of("m", SOURCE)
    entries = [entry_of(mutant) for mutant in mutants]
    assert [entry.key for entry in entries] == [mutant.key for mutant in mutants]
    assert report.stale(entries, mutants) == []
    assert len(report.stale(entries, mutants[1:])) == 1
