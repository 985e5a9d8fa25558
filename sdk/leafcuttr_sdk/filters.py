"""Record filters and produce validators, which get every record before it is stored in a topic.

They run for every protocol (Kafka's, HTTP, MQTT) before the append, and only for topics that name them:
`lc.filters` and `lc.validators` of the topic, or `lc.filters.<topic or pattern>` and `lc.validators.<topic or
pattern>` of the broker. Validators run first: the producer is told what they refuse, and not what filters do.

Outside of a topic a relay, or the way down to MQTT, has filters too: `Broker.record_filters` and
`CommandContext.record_filters` give a `FilterChain`.

An instance is made for each topic that names it, and again when a setting of the topic changes. It may be called in
any thread, but never by two at once. It does not wait: no network, no lock that another holds for long. One that cannot
judge some records without it raises `NeedsThread`, and is a `WaitingFilter` or a `WaitingValidator`. Which client has
produced the records says `leafcuttr_sdk.current_principal()`, where that client has authenticated.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, final

from leafcuttr_sdk._described import described
from leafcuttr_sdk.peek import Peek, PeekedBatch
from leafcuttr_sdk.records import Record
from leafcuttr_sdk.settings import Settings
from leafcuttr_sdk.types import Clock

if TYPE_CHECKING:
    from leafcuttr_sdk.read_only import ReadOnlyBroker
    from leafcuttr_sdk.schemas import SchemaProvider


@final
class Drop:
    """The verdict `DROP`: the record is not stored. Its offset stays empty, as compaction leaves offsets empty."""

    def __repr__(self) -> str:
        return "DROP"


DROP: Final = Drop()


@described
class DeadLetter(NamedTuple):
    """The verdict that a record goes to a dead-letter topic instead, with headers that say why and where from."""

    reason: str
    """One line; it becomes the header `lc.dead.letter.reason`."""
    topic: str | None = None
    """None: the topic's `lc.filters.dead.letter.topic`."""
    record: Record | None = None
    """What is written there; without a `timestamp` it keeps that of the record. None: the record as the filter got it.
    A filter that masks gives the masked one, so that what it sets aside is masked too."""
    filter: str = ""
    """The filter's name, for those who carry the verdict out. A filter leaves it: the broker sets it."""


@described
class NotReady(NamedTuple):
    """The verdict that the filter or validator cannot judge yet, because it lacks something for now. The batch is
    refused as a whole, and nothing of it is stored. Kafka's clients get NOT_ENOUGH_REPLICAS, which they retry by
    themselves, idempotent producers with the same sequence; producers in the process get `NotReadyError`. `/health`
    is degraded meanwhile, and says what it waits for."""

    waits_for: str
    """What it lacks, in one line that goes to the client too: `the schemas are still being read`."""


@described
class Routed(NamedTuple):
    """The verdict that the record, or another one in its place, goes to another topic. Only where `TopicContext.routes`
    is true: a relay can carry it out, and so can the way down to MQTT. In `lc.filters` of a topic it refuses the batch,
    as a verdict that is none."""

    record: Record
    topic: str


Verdict: TypeAlias = Record | Drop | DeadLetter | NotReady | Routed
"""The record itself, the same object, keeps it as it came; another one takes its place, `DROP` and `DeadLetter` take it
out, `Routed` sends it elsewhere. `NotReady` refuses the batch for now."""


@described
class FilterFailure(NamedTuple):
    """In the place of a verdict: a filter has raised, or has returned what is no verdict."""

    filter: str
    reason: str
    """One line, without what the record holds."""


Outcome: TypeAlias = Verdict | FilterFailure
"""What a `FilterChain` has made of a record. A `DeadLetter` has its `record` and its `filter`, a `Routed` the name of a
topic that is one."""


@described
class TopicContext(NamedTuple):
    """What an instance knows of the topic it works for."""

    topic: str
    topic_settings: Settings
    """The plugin's settings of this topic."""
    settings: Settings
    """The plugin's settings of the broker."""
    clock: Clock
    logger: logging.Logger
    broker: "ReadOnlyBroker"
    """What may be read of the broker. It is the object that the plugin's hooks and services get, so it finds what a
    service keeps for this broker (`WeakKeyDictionary`)."""
    schemas: "SchemaProvider | None" = None
    """The schema registry that a plugin brings; None without one. An instance may ask what it has in memory, which
    changes while the instance lives."""
    routes: bool = False
    """Whether the verdict `Routed` can be carried out. Where it cannot, `make` of a filter that does nothing else
    raises PluginError."""


class RecordFilter(Protocol):
    """A filter that has been made. `leafcuttr_sdk.testing.check_record_filter` tests one against this contract."""

    def filter(self, record: Record) -> Verdict:
        """Return the verdict on the record. Its `timestamp` is never None, and -1 where the producer gave none; a
        record that replaces it without a timestamp keeps this one. An exception, or a value that is no verdict, refuses
        the whole batch with UNKNOWN_SERVER_ERROR: a filter that fails must not lose records."""
        ...


class ForgettingFilter(RecordFilter, Protocol):
    """A record filter that remembers records, and judges later ones by them."""

    def forget(self) -> None:
        """Forget them. Called where records that it has judged were not stored, so that they may come again: another
        filter of the batch was not ready or failed. A copy that passes is better than a record that is lost."""
        ...


class NeedsThread(Exception):
    """Raised by `filter` of a `WaitingFilter`, or `validate` of a `WaitingValidator`, for a record that it cannot judge
    without waiting. The batch goes through the topic's validators and filters again, in a thread in which it may wait,
    and so do all later ones of the topic. The message says why, for callers outside of a topic, who have no such
    thread: there it is a `FilterFailure`."""


class WaitingFilter(RecordFilter, Protocol):
    """A record filter that has to wait for some records: for `Broker.run_in_worker`, say."""

    def filter_in_thread(self, records: Sequence[Record]) -> Sequence[Verdict]:
        """Return the verdict on each record of a batch, in their order. It is called in the place of `filter`, in a
        thread that `trio.to_thread.run_sync` runs, where `trio.from_thread.run` may be used. The other batches of the
        topic, and the producer, wait meanwhile: limit the time, by the size of the records."""
        ...


class FilterChain(Protocol):
    """Filters in their order, made for one topic, outside of the topic's own chain: what `Broker.record_filters` and
    `CommandContext.record_filters` return. Any thread, one at a time."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the filters."""
        ...

    def filter(self, records: Sequence[Record]) -> "list[Outcome]":
        """What becomes of each record, in their order. The next filter sees what the one before has left, and one that
        all keep is the same object. Each record has a `timestamp`; -1 is none.

        The list ends with the first `NotReady`: the records behind it, and that one, have to come again, and filters
        that remember records forget them. Where records come again for another reason, because they could not be
        written, call `forget` before. Of a filter that fails there is a `FilterFailure` for each record; nothing is
        raised.
        """
        ...

    def forget(self) -> None:
        """Records that were judged may come again: see `ForgettingFilter`."""
        ...

    def close(self) -> None:
        """The filters are used no more. It may be called twice."""
        ...


class ProduceValidator(Protocol):
    """A validator that has been made. `leafcuttr_sdk.testing.check_produce_validator` tests one."""

    def validate(self, record: Record) -> "str | NotReady | None":
        """Return why the record is refused, in one line that is sent to the producer with INVALID_RECORD and the
        record's index; None accepts it. `NotReady` refuses the batch for now, unless a record of it is refused for
        good."""
        ...


class WaitingValidator(ProduceValidator, Protocol):
    """A validator that has to wait for some records, as a `WaitingFilter`."""

    def validate_in_thread(self, records: Sequence[Record]) -> "Sequence[str | NotReady | None]":
        """Return for each record of a batch, in their order, what `validate` returns for one. As
        `WaitingFilter.filter_in_thread`."""
        ...


class BatchValidator(Protocol):
    """A validator with a `peek` that has been made. `leafcuttr_sdk.testing.check_produce_validator` tests one.

    It may have an attribute `peek` of its own, a `Peek` that holds for its topic in the place of that of its spec: each
    byte that is not needed is not taken out."""

    def validate_batch(self, batch: PeekedBatch) -> Mapping[int, str | NotReady]:
        """Return the index of each record that is refused, counted from 0 in the batch, with the reason: one line
        that is sent to the producer with INVALID_RECORD and that index. An empty mapping accepts the batch. With
        `NotReady` as a reason the batch is refused for now, unless a record of it is refused for good. An exception,
        or an answer of another kind, refuses it with UNKNOWN_SERVER_ERROR."""
        ...


@described
class RecordFilterSpec(NamedTuple):
    """A filter by its name: what `leafcuttr_register_record_filters` returns. `make` imports what is heavy; it may be
    called in any thread, and raise PluginError: the topic then takes no records, with that line."""

    name: str
    summary: str
    make: Callable[[TopicContext], RecordFilter | None]
    implied_by: tuple[str, ...] = ()
    """Topic settings of the plugin, families included. A topic that has one of them at another value than its default
    has this filter, before those that `lc.filters` names, whether or not that names it. While the plugin is off or
    gone, such a topic takes no records. Where there are some, `make` may return None: the settings of this topic,
    taken together, need no filter."""


@described
class ProduceValidatorSpec(NamedTuple):
    """A validator by its name: what `leafcuttr_register_produce_validators` returns. `make` as for filters."""

    name: str
    summary: str
    make: Callable[[TopicContext], ProduceValidator | BatchValidator | None]
    peek: Peek | None = None
    """What the validator needs, if that is only the first bytes of keys and values, or some headers: it then has
    `validate_batch` and sees no records. None: it has `validate` and sees each record."""
    implied_by: tuple[str, ...] = ()
    """As for filters, with `lc.validators`."""
