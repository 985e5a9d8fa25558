"""Conformance of record filters and produce validators: `leafcuttr_sdk.filters` says what they promise.

Each is made as a broker makes it and is given records that clients do send, `sample_records()` and those of the author,
in this thread and in others. The checks hold for every filter and validator, whatever it does: that it can be
made and called, that each answer can be carried out, that ordinary records raise nothing, that it does not wait and
leaves nothing behind. `record_trial` does it.
"""

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Final

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.filters import (
    ProduceValidator,
    ProduceValidatorSpec,
    RecordFilter,
    RecordFilterSpec,
    Routed,
    TopicContext,
)
from leafcuttr_sdk.peek import why_no_peek
from leafcuttr_sdk.records import Record
from leafcuttr_sdk.settings import Value
from leafcuttr_sdk.testing import watch
from leafcuttr_sdk.testing.context import topic_context
from leafcuttr_sdk.testing.implied import implied_checks
from leafcuttr_sdk.testing.peek_trial import PeekTrial, why_no_refusals
from leafcuttr_sdk.testing.record_trial import Trial, TrialKind
from leafcuttr_sdk.testing.report import Check, Notes, Report, literally
from leafcuttr_sdk.testing.samples import Sample
from leafcuttr_sdk.testing.verdicts import why_no_reason, why_no_verdict

_FILTER: Final = TrialKind(
    "record filter",
    "filter",
    why_no_verdict,
    "return DeadLetter(reason) or DROP for what it cannot handle: an exception refuses the whole batch",
)
_VALIDATOR: Final = TrialKind(
    "produce validator",
    "validate",
    why_no_reason,
    "return the reason as text: of an exception the producer learns only that the broker failed",
)

_PEEKING: Final = _VALIDATOR._replace(
    method="validate_batch", why_wrong=why_no_refusals, argument="one batch"
)


def check_record_filter(
    filter: RecordFilterSpec | Callable[[TopicContext], RecordFilter | None],
    *,
    plugin: ModuleType | None = None,
    settings: Mapping[str, Value] | None = None,
    topic_settings: Mapping[str, Value] | None = None,
    records: Iterable[Record] = (),
    repeatable: bool = True,
) -> None:
    """Check a filter: its spec, or what makes it (the class, if it takes the context).

    `plugin` is the module whose hooks declare the settings that it reads, `settings` and `topic_settings` their values
    where they are not the defaults; `records` are more records to try. One that routes is tried where that can be
    carried out, and where it cannot. A filter that decides by chance, or by what
    other instances saw, is not `repeatable`. Takes a fraction of a second. Raises ContractError with all that is wrong.
    """
    context = topic_context(plugin=plugin, settings=settings, topic_settings=topic_settings)
    filter_report(filter, context, records, repeatable=repeatable).raise_problems()


def check_produce_validator(
    validator: ProduceValidatorSpec | Callable[[TopicContext], ProduceValidator | None],
    *,
    plugin: ModuleType | None = None,
    settings: Mapping[str, Value] | None = None,
    topic_settings: Mapping[str, Value] | None = None,
    records: Iterable[Record] = (),
    repeatable: bool = True,
) -> None:
    """Check a validator, as `check_record_filter` checks a filter. One with a `peek` by its spec, which has it: it is
    shown batches."""
    context = topic_context(plugin=plugin, settings=settings, topic_settings=topic_settings)
    validator_report(validator, context, records, repeatable=repeatable).raise_problems()


def filter_report(
    filter: RecordFilterSpec | Callable[[TopicContext], RecordFilter | None],
    context: TopicContext,
    records: Iterable[Record] = (),
    *,
    repeatable: bool = True,
) -> Report:
    """The report that `check_record_filter` would raise."""
    return _report(_FILTER, filter, context, records, repeatable)


def validator_report(
    validator: ProduceValidatorSpec | Callable[[TopicContext], ProduceValidator | None],
    context: TopicContext,
    records: Iterable[Record] = (),
    *,
    repeatable: bool = True,
) -> Report:
    """The report that `check_produce_validator` would raise."""
    peek = validator.peek if isinstance(validator, ProduceValidatorSpec) else None
    if peek is None:
        return _report(_VALIDATOR, validator, context, records, repeatable)
    name, make = _named(validator)
    if _needs_none(validator, context):
        return _not_needed(_PEEKING, name)
    wrong = why_no_peek(peek)
    if wrong is not None:
        notes = Notes(_PEEKING.name, name, {"peek": "it says what it needs"})
        notes.add("peek", literally(f"its peek is {peek!r}: {wrong}"))
        return notes.report()
    trial = PeekTrial(_PEEKING, name, make, context, peek)
    return watch.in_thread(lambda: trial.run(records, repeatable=repeatable))


def _report(
    kind: TrialKind,
    checked: RecordFilterSpec | ProduceValidatorSpec | Callable[[TopicContext], object],
    context: TopicContext,
    records: Iterable[Record],
    repeatable: bool,
) -> Report:
    name, make = _named(checked)
    context = context._replace(routes=kind is _FILTER)
    if _needs_none(checked, context):
        report = _not_needed(kind, name)
    else:
        trial = Trial(kind, name, make, context)
        # In a thread of its own: there a KeyboardInterrupt can only be what the plugin raises.
        report = watch.in_thread(lambda: trial.run(records, repeatable=repeatable))
        if kind is _FILTER and trial.has_routed and report.fine:
            report = report._replace(checks=(*report.checks, _check_of_routes(make, context, trial.samples)))
    return report._replace(checks=(*report.checks, *implied_checks(checked, context)))


def _check_of_routes(
    make: Callable[[TopicContext], object], context: TopicContext, samples: Iterable[Sample]
) -> Check:
    """Of a filter that routes: what it does where that cannot be carried out."""

    def problem() -> str | None:
        try:
            instance: Any = make(context._replace(routes=False))
        except PluginError:
            return None
        for sample in samples:
            if isinstance(instance.filter(sample.record), Routed):
                return (
                    f"it routes {sample.what} although `context.routes` is False: raise PluginError when it is made "
                    "so, or route nothing"
                )
        return None

    found = watch.in_thread(problem)
    return Check("routes", "it routes only where that can be carried out", () if found is None else (found,))


def _named(
    checked: RecordFilterSpec | ProduceValidatorSpec | Callable[[TopicContext], object],
) -> tuple[str, Callable[[TopicContext], object]]:
    if isinstance(checked, RecordFilterSpec | ProduceValidatorSpec):
        return checked.name, checked.make
    return getattr(checked, "__name__", type(checked).__name__), checked


def _needs_none(
    checked: RecordFilterSpec | ProduceValidatorSpec | Callable[[TopicContext], object], context: TopicContext
) -> bool:
    """Whether the topic's settings need none, which one that settings imply may say: by None, or by a PluginError for
    a person who has named it without them."""
    if not isinstance(checked, RecordFilterSpec | ProduceValidatorSpec) or not checked.implied_by:
        return False

    def makes_none() -> bool:
        try:
            return checked.make(context) is None
        except PluginError:
            return True
        except BaseException:
            return False  # the trial says so

    return watch.in_thread(makes_none)


def _not_needed(kind: TrialKind, name: str) -> Report:
    return Notes(kind.name, name, {"made": "it can be made, or these settings need none"}).report()
