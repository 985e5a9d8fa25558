"""One run of the checks of a record filter or a produce validator: what is done with it, and what is told of it."""

import gc
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, Final, NamedTuple, cast

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.filters import NeedsThread, NotReady, Routed, TopicContext
from leafcuttr_sdk.records import Record
from leafcuttr_sdk.testing import watch
from leafcuttr_sdk.testing.context import UndeclaredSettingError
from leafcuttr_sdk.testing.report import Notes, Report, literally, told
from leafcuttr_sdk.testing.samples import NOW_MS, Sample, sample_records

PROMISES: Final = {
    "made": "it can be made for a topic, any number of times",
    "called": "its method is a plain one that takes a record",
    "verdicts": "every answer is one that the broker can carry out",
    "exceptions": "no record that a client may send makes it raise",
    "does not wait": "it neither waits nor computes for long",
    "other instances": "it keeps nothing beside the instance: another one decides the same",
    "any thread": "it works in a thread other than the one that made it",
    "leaves nothing": "it leaves no threads, processes and open descriptors behind",
}
_ROUNDS: Final = 3
_COUNTED: Final = ("descriptors", "threads")

Call = Callable[[Record], object]


class TrialKind(NamedTuple):
    """What a filter and a validator differ in."""

    name: str
    method: str
    why_wrong: Callable[[object], str | None]
    on_error: str
    argument: str = "one record"


class Outcome(NamedTuple):
    """Of one record."""

    verdict: object
    error: BaseException | None


class Trial:
    def __init__(
        self,
        kind: TrialKind,
        name: str,
        make: Callable[[TopicContext], object],
        context: TopicContext,
        promises: Mapping[str, str] = PROMISES,
    ) -> None:
        self._kind = kind
        self._promises = promises
        self._make = make
        self._context = context
        self._notes = Notes(kind.name, name, promises)
        self.samples: list[Sample] = []
        self.has_routed = False
        """Whether a verdict was Routed."""
        self._may_wait = False

    def run(self, records: Iterable[Record], *, repeatable: bool) -> Report:
        """Check everything that can be checked: what cannot be made is not called."""
        samples = self.samples = [*self._samples(), *_of_the_author(records)]
        threads, processes = watch.threads(), watch.child_processes()
        instance = self._new()
        if instance is None:
            return self._notes.report(["made"])
        call = self._method(instance)
        if call is None:
            return self._notes.report(["made", "called"])
        self._may_wait = callable(getattr(instance, f"{self._kind.method}_in_thread", None))
        outcomes = [self._look(call, sample) for sample in samples]
        self.has_routed = any(isinstance(one.verdict, Routed) for one in outcomes)
        if repeatable:
            self._compare(samples, outcomes)
            self._compare_otherwise(instance, samples, outcomes)
        self._in_another_thread(call, samples, outcomes)
        self._look_for_leaks(call, samples)
        del instance, call
        self._look_for_leftovers(threads, processes)
        return self._notes.report(
            name for name in self._promises if repeatable or name not in ("other instances", "batches")
        )

    def _samples(self) -> list[Sample]:
        return sample_records()

    def _compare_otherwise(
        self, instance: object, samples: Sequence[Sample], outcomes: Sequence[Outcome]
    ) -> None:
        """What else the outcomes are to be compared with."""

    def _new(self) -> object | None:
        """A new instance; None if there is none."""
        made = watch.watched(lambda: self._make(self._context))
        if made.error is not None:
            self._notes.add("made", _why_not_made(self._make, made.error))
        elif made.result is None:
            self._notes.add("made", "what makes it returned None: return the instance")
        return made.result

    def _method(self, instance: object) -> Call | None:
        """Its method, if it can be called."""
        name = self._kind.method
        method = getattr(instance, name, None)
        wrong = None
        if not callable(method):
            near = get_close_matches(name, [one for one in dir(instance) if not one.startswith("_")], 1, 0.3)
            meant = f" (is {near[0]} meant to be it?)" if near else ""
            wrong = f"{type(instance).__name__} has no method {name}{meant}"
        elif inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            wrong = f"{name} is an async function: write `def`, it is called as a plain one and may not wait"
        elif inspect.isgeneratorfunction(method):
            wrong = f"{name} is a generator: return one answer, do not yield"
        else:
            try:
                inspect.signature(method).bind(Record(b""))
            except TypeError as error:
                wrong = f"{name} cannot be called with {self._kind.argument}: {error}"
            except ValueError:  # no signature to be had: a method written in C
                pass
        if wrong is not None:
            self._notes.add("called", wrong)
            return None
        return self._call_of(cast("Call", method))

    def _call_of(self, method: Callable[[Any], object]) -> Call:
        return method

    def _look(self, call: Call, sample: Sample) -> Outcome:
        """Give it a record, and judge what it does."""
        one = watch.watched(lambda: call(sample.record))
        for deed in sorted(one.did):
            self._notes.add(
                "does not wait", f"it {deed}, for {{}}: all that the broker does waits", sample.what
            )
        slow = None if one.did else watch.slowness(lambda: call(sample.record), one)
        if slow is not None:
            self._notes.add(
                "does not wait", f"it {slow}, for {{}}: all that the broker does waits", sample.what
            )
        if one.error is not None:
            if isinstance(one.error, NeedsThread) and self._may_wait:
                return Outcome(None, one.error)
            problem = f"{self._kind.method} raised {_told(one.error)} for {{}}: {self._kind.on_error}"
            self._notes.add("exceptions", problem, sample.what)
            return Outcome(None, one.error)
        wrong = self._kind.why_wrong(one.result)
        if wrong is not None:
            self._notes.add("verdicts", f"{literally(wrong)}, for {{}}", sample.what)
        if inspect.iscoroutine(one.result):
            cast("Coroutine[Any, Any, Any]", one.result).close()
        return Outcome(one.result, None)

    def _compare(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> None:
        """Another instance, made when the first has seen everything."""
        instance = self._new()
        call = self._method(instance) if instance is not None else None
        if call is None:
            return
        for sample, before in zip(samples, outcomes, strict=True):
            after = _try(call, sample.record)
            if isinstance(before.verdict, NotReady) or isinstance(after.verdict, NotReady):
                continue  # what it lacks for now may be there by now
            if before.error is None and (after.error is not None or after.verdict != before.verdict):
                self._notes.add(
                    "other instances",
                    "a second instance decides otherwise for {}: one is made for each topic, and again when a setting "
                    "changes, so what it remembers belongs to the instance, not to the class or the module "
                    "(repeatable=False if it decides by chance)",
                    sample.what,
                )

    def _in_another_thread(self, call: Call, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> None:
        there = watch.in_thread(lambda: [_try(call, sample.record) for sample in samples])
        for sample, here, after in zip(samples, outcomes, there, strict=True):
            if here.error is None and after.error is not None:
                self._notes.add(
                    "any thread",
                    f"in a thread other than the one that made it, it raised {_told(after.error)} for {{}}",
                    sample.what,
                )

    def _look_for_leaks(self, call: Call, samples: Sequence[Sample]) -> None:
        """What grows with every record, in each of several rounds."""

        def round_of_records() -> None:
            for sample in samples:
                _try(call, sample.record)

        for what, grown in _growth(round_of_records):
            self._notes.add(
                "leaves nothing",
                f"{grown} more {what} are open after {len(samples)} records, and again after as many more",
            )

    def _look_for_leftovers(self, threads: set[int], processes: set[int]) -> None:
        """What is still there when its instances have gone, and new ones have come and gone."""
        if watch.threads() - threads:
            gc.collect()
        if watch.threads() - threads:
            self._notes.add("leaves nothing", "a thread that it started goes on when it is no longer used")
        if left := watch.child_processes() - processes:
            ids = ", ".join(map(str, sorted(left)))
            self._notes.add("leaves nothing", f"it started processes and did not wait for their end: {ids}")
        for what, grown in _growth(lambda: watch.watched(lambda: self._make(self._context))):
            if what == "descriptors":
                self._notes.add(
                    "leaves nothing",
                    f"{grown} {what} stay open of every instance that is no longer used: nothing tells it to close "
                    "them, so do not keep files open",
                )


def _growth(step: Callable[[], object]) -> Iterable[tuple[str, int]]:
    """What there is more of after every step of several, and how much at least."""
    for collect in (False, True):  # a collection takes longer than all the rest
        counts: list[tuple[int, int]] = []
        for _ in range(_ROUNDS + 1):
            step()
            if collect:
                gc.collect()
            counts.append((watch.open_descriptors() or 0, len(watch.threads())))
        grown = [
            min(after[at] - before[at] for before, after in pairwise(counts)) for at in range(len(_COUNTED))
        ]
        if max(grown) <= 0:
            return
    yield from ((what, least) for what, least in zip(_COUNTED, grown, strict=True) if least > 0)


def _try(call: Call, record: Record) -> Outcome:
    try:
        result = call(record)
    except BaseException as error:
        if watch.of_the_person(error):
            raise
        return Outcome(None, error)
    if inspect.iscoroutine(result):
        cast("Coroutine[Any, Any, Any]", result).close()
        return Outcome(None, None)
    return Outcome(result, None)


def _of_the_author(records: Iterable[Record]) -> Iterable[Sample]:
    for number, record in enumerate(records):
        timed = record if record.timestamp is not None else record._replace(timestamp=NOW_MS)
        yield Sample(f"record {number} of the author's", timed)


def _why_not_made(make: Callable[..., object], error: BaseException) -> str:
    if isinstance(error, UndeclaredSettingError):
        return (
            f"{error}: declare it in leafcuttr_register_settings or leafcuttr_register_topic_settings, and give the "
            "check the module of the plugin (plugin=...)"
        )
    if isinstance(error, PluginError):
        return f"it refuses to be made: {error}"
    if not takes_one(make):
        return f"it cannot be made with the context of a topic as its one argument: {_told(error)}"
    return (
        f"making it raised {_told(error)}: raise PluginError with one line that says what the person can do"
    )


def takes_one(make: Callable[..., object]) -> bool:
    """Whether it can be called with one argument, as far as its signature tells."""
    try:
        inspect.signature(make).bind(object())
    except TypeError:
        return False
    except ValueError:  # no signature to be had
        return True
    return True


def _told(error: BaseException) -> str:
    return literally(told(error))
