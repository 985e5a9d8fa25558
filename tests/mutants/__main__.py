"""The command: see the package."""

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NoReturn

from mutants import report
from mutants.choice import chosen
from mutants.equivalents import Equivalent, read_equivalents, trouble_with
from mutants.mutation import Mutant, mutants_of
from mutants.report import Tally
from mutants.targets import TARGETS, nearest_tests, source_of
from mutants.workspace import Limits, UnusableTestsError, Workspace

# A mutant may take this much longer than the module itself before it counts as one that loops.
_SLOWER: Final = 4
_LEAST: Final = Limits(20.0, 10)
_BASELINE: Final = Limits(300.0, 300)


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, _stop)
    tallies: list[Tally] = []
    try:
        with tempfile.TemporaryDirectory(prefix="leafcuttr-mutants-", ignore_cleanup_errors=True) as folder:
            workspace = Workspace(Path(folder))
            for module in options.modules or TARGETS:
                tallies.append(Tally(module))
                _try_module(tallies[-1], workspace, options)
    except KeyboardInterrupt:
        print("\nstopped; the work tree is as it was")
        _summarize(tallies)
        return 130
    except UnusableTestsError as error:
        print(f"the tests of {tallies[-1].module} say nothing about it:\n{error}", file=sys.stderr)
        return 2
    return _summarize(tallies)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="nox -s mutants --", description="Mutate modules and run the nearest tests."
    )
    parser.add_argument(
        "modules", nargs="*", metavar="MODULE", help=f"of {', '.join(TARGETS)}; all without any"
    )
    parser.add_argument("--limit", type=int, default=60, help="at most so many mutants a module (60)")
    parser.add_argument("--seed", type=int, default=0, help="which of them (0)")
    parser.add_argument(
        "--only",
        action="append",
        metavar="TEXT",
        help="only those whose 'function: before -> after' has this text; may be given more than once",
    )
    parser.add_argument(
        "--check-equivalents", action="store_true", help="run those too that are listed as equivalent"
    )
    options = parser.parse_args()
    unknown = [module for module in options.modules if module not in TARGETS]
    if unknown:
        parser.error(f"no such module: {', '.join(unknown)} (there are {', '.join(TARGETS)})")
    return options


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _try_module(tally: Tally, workspace: Workspace, options: argparse.Namespace) -> None:
    module, began = tally.module, time.monotonic()
    source = source_of(module).read_text()
    listed = {entry.key: entry for entry in read_equivalents() if entry.module == module}
    print(f"\n{module}: making mutants", flush=True)
    mutants = mutants_of(module, source)
    tally.wrong = [trouble for entry in listed.values() if (trouble := trouble_with(entry)) is not None]
    tally.wrong += report.stale(listed.values(), mutants)
    todo = [
        mutant
        for mutant in mutants
        if not options.only or any(text in mutant.description for text in options.only)
    ]
    todo = chosen(todo, options.limit, options.seed)
    tally.generated, tally.chosen = len(mutants), len(todo)
    try:
        limits = _limits(workspace, module, source)
        print(
            f"{module}: {len(mutants)} mutants, {len(todo)} chosen, {limits.work} s of work for each",
            flush=True,
        )
        for number, mutant in enumerate(todo, 1):
            entry = listed.get(mutant.key)
            if entry is not None and not options.check_equivalents:
                tally.outcomes["equivalent"] += 1
                continue
            workspace.write(module, mutant.source(source))
            _try_mutant(tally, workspace, mutant, entry, limits, f"{number:3}/{len(todo)}")
    finally:
        tally.seconds = time.monotonic() - began
        workspace.write(module, source)


def _limits(workspace: Workspace, module: str, source: str) -> Limits:
    """What a mutant may take. The tests have to pass on the module as it is, and to fail without it."""
    workspace.write(module, source)
    tests = nearest_tests(module)
    run = workspace.run(tests, _BASELINE)
    if run.outcome != "passed":
        raise UnusableTestsError(f"{run.outcome} without any mutant:\n{run.output[-3000:]}")
    workspace.write(module, "raise RuntimeError('the copy is imported')\n")
    if workspace.run(tests[:1], _BASELINE).outcome == "passed":
        raise UnusableTestsError("they pass without the module: they import another copy of it")
    return Limits(max(_LEAST.elapsed, run.seconds * _SLOWER), max(_LEAST.work, int(run.work * _SLOWER)))


def _try_mutant(
    tally: Tally, workspace: Workspace, mutant: Mutant, entry: Equivalent | None, limits: Limits, at: str
) -> None:
    run = workspace.run(nearest_tests(mutant.module), limits)
    if run.outcome == "timeout":  # the machine may have been busy
        run = workspace.run(nearest_tests(mutant.module), limits._replace(elapsed=3 * limits.elapsed))
    outcome = {"passed": "survived", "failed": "killed"}.get(run.outcome, "timeout")
    if entry is not None and outcome == "survived":
        outcome = "equivalent"
    elif entry is not None:
        tally.wrong.append(
            f"{entry.where}: it is listed as equivalent, but {run.failed_test or outcome} kills it"
        )
    elif outcome == "survived":
        tally.survivors.append(mutant)
    tally.outcomes[outcome] += 1
    print(report.progress(at, outcome, run.seconds, mutant, run.failed_test), flush=True)


def _summarize(tallies: list[Tally]) -> int:
    for tally in tallies:
        for mutant in tally.survivors:
            print(f"\n{report.as_entry(mutant)}")
        for trouble in tally.wrong:
            print(f"\n{trouble}")
    print(f"\n{report.table(tallies)}")
    if not any(tally.failed for tally in tallies):
        return 0
    print("\nKill each survivor by a test, or list it in tests/mutants/equivalent.toml with its reason.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
