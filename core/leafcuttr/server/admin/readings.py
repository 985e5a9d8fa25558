"""How each metric of the catalog is read off the broker. Nothing is counted here.

A reading is a generator over `Gathered`, so that an exposition may pause after any sample.
"""

import gc
import platform
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from leafcuttr.errors import ErrorCode
from leafcuttr.log.log import Log
from leafcuttr.metrics import broker_metrics as broker
from leafcuttr.metrics import group_metrics as groups
from leafcuttr.metrics import plugin_metrics as plugins
from leafcuttr.metrics import request_metrics as requests
from leafcuttr.metrics import topic_metrics as topics
from leafcuttr.metrics.catalog import METRICS
from leafcuttr.server.admin.gathering import Families, Gathered, ReadMetric, Sample
from leafcuttr.server.admin.names import Traffic
from leafcuttr.state import chains
from leafcuttr.state.plugged import ChildState, ServedCounts, ServiceState
from leafcuttr.version import __version__
from leafcuttr.wire.api import APIS
from leafcuttr_sdk.metrics import OTHER, Metric

if TYPE_CHECKING:
    from leafcuttr.log.append.chain.chain import Tally
    from leafcuttr.server.login.sessions import Sessions

_RUNNING, _STOPPING = 3, 7  # Kafka's BrokerState
_CODES = frozenset(ErrorCode)

_readings: dict[Metric, ReadMetric] = {}


def broker_families(more: Callable[[], Iterable[tuple[Metric, ReadMetric]]] = tuple) -> Families:
    """Every metric of the catalog, in its order, and behind them those that `more` has at each scrape."""
    families = Families(more)
    for metric in METRICS.values():
        families.add(metric, _readings[metric])
    return families


def _reads(metric: Metric) -> Callable[[ReadMetric], ReadMetric]:
    def register(reading: ReadMetric) -> ReadMetric:
        assert metric not in _readings
        _readings[metric] = reading
        return reading

    return register


def _number(metric: Metric, read: Callable[[Gathered], float]) -> None:
    """A metric without labels."""
    _reads(metric)(lambda gathered: [((), read(gathered))])


# Topics and partitions


def _traffic(metric: Metric, read: Callable[[Traffic], int]) -> None:
    def reading(gathered: Gathered) -> Iterator[Sample]:
        for name, traffic in gathered.topics:
            yield (name,), read(traffic)
        if gathered.other is not None:
            yield (OTHER,), read(gathered.other)

    _reads(metric)(reading)


def _partition(
    metric: Metric, read: Callable[[Log], int], other: Callable[[Gathered], int] | None = None
) -> None:
    def reading(gathered: Gathered) -> Iterator[Sample]:
        for name, partition, log in gathered.named:
            yield (name, partition), read(log)
        if other is not None and gathered.other_partitions:
            yield (OTHER, OTHER), other(gathered)

    _reads(metric)(reading)


_traffic(topics.MESSAGES_IN, lambda traffic: traffic.records_in)
_traffic(topics.BYTES_IN, lambda traffic: traffic.bytes_in)
_traffic(topics.MESSAGES_OUT, lambda traffic: traffic.records_out)
_traffic(topics.BYTES_OUT, lambda traffic: traffic.bytes_out)
_partition(topics.LOG_SIZE, lambda log: log.size, lambda gathered: gathered.other_size)
_partition(topics.LOG_START_OFFSET, lambda log: log.log_start_offset)
_partition(topics.LOG_END_OFFSET, lambda log: log.log_end_offset)
_partition(topics.LAST_STABLE_OFFSET_LAG, lambda log: log.log_end_offset - log.last_stable_offset)
_partition(topics.LOG_SEGMENTS, lambda log: log.segment_count, lambda gathered: gathered.other_segments)
_reads(topics.PARTITION_OFFLINE)(lambda gathered: ((labels, 1) for labels in gathered.offline))
_number(topics.OFFLINE_PARTITIONS, lambda gathered: gathered.offline_count)
_number(topics.TOPICS, lambda gathered: len(gathered.broker.topics.by_name))
_number(topics.PARTITIONS, lambda gathered: len(gathered.named) + gathered.other_partitions)
_number(topics.UNNAMED_PARTITIONS, lambda gathered: gathered.other_partitions)


# Requests and connections


def _api(key: int) -> str:
    return APIS[key].name


@_reads(requests.REQUESTS)
def _requests(gathered: Gathered) -> Iterator[Sample]:
    counts = gathered.broker.counts
    for key, times in list(counts.answered.items()):
        count = times.count + counts.unanswered.get(key, 0)
        if count:
            yield (_api(key),), count


@_reads(requests.REQUEST_SECONDS)
def _request_seconds(gathered: Gathered) -> Iterator[Sample]:
    for key, times in list(gathered.broker.counts.answered.items()):
        if times.count:
            yield (_api(key),), times


@_reads(requests.ERRORS)
def _errors(gathered: Gathered) -> Iterator[Sample]:
    for (key, code), count in list(gathered.broker.counts.errors.items()):
        known = code in _CODES
        yield (_api(key), ErrorCode(code).name if known else str(code)), count


def _by_listener(metric: Metric, read: Callable[[Gathered], dict[str, int]]) -> None:
    def reading(gathered: Gathered) -> Iterator[Sample]:
        counted = read(gathered)
        for listener in gathered.broker.listeners:
            yield (listener.name,), counted.get(listener.name, 0)

    _reads(metric)(reading)


def _of_sessions(read: "Callable[[Sessions], dict[str, int]]") -> Callable[[Gathered], dict[str, int]]:
    """Nobody has logged in while there are no sessions."""

    def reading(gathered: Gathered) -> dict[str, int]:
        sessions = gathered.connections.sessions
        return {} if sessions is None else read(sessions)

    return reading


_by_listener(requests.CONNECTIONS, lambda gathered: gathered.connected)
_by_listener(requests.CONNECTIONS_ACCEPTED, lambda gathered: gathered.connections.accepted)
_by_listener(requests.CONNECTIONS_REFUSED, lambda gathered: gathered.connections.refused)
_by_listener(requests.LOGINS, _of_sessions(lambda sessions: sessions.begun))
_by_listener(requests.LOGINS_FAILED, lambda gathered: gathered.connections.not_admitted)
_by_listener(requests.LOGINS_AGAIN, _of_sessions(lambda sessions: sessions.begun_again))
_by_listener(requests.LOGINS_AGAIN_FAILED, _of_sessions(lambda sessions: sessions.failed_again))
_by_listener(requests.SESSIONS_OVER, _of_sessions(lambda sessions: sessions.used_after_the_end))
_number(requests.MALFORMED, lambda gathered: gathered.broker.counts.malformed)
_number(requests.ACCEPT_PAUSES, lambda gathered: gathered.connections.pauses)


@_reads(requests.CERTIFICATE_REMAINING)
def _certificate_remaining(gathered: Gathered) -> Iterator[Sample]:
    """Of two with the same subject the one that expires first."""
    now_s = gathered.broker.clock.now_ms() / 1000
    of_listeners = {**gathered.connections.certificates, **gathered.broker.certificates}
    for listener, certificates in of_listeners.items():
        ends: dict[str, int] = {}
        for one in certificates.chain:
            subject = one.subject_text
            ends[subject] = min(one.not_after, ends.get(subject, one.not_after))
        for subject, end in ends.items():
            yield (listener, subject), end - now_s


_number(requests.LONG_POLLS, lambda gathered: len(gathered.broker.delayed_requests))
_number(requests.FETCH_SESSIONS, lambda gathered: len(gathered.broker.fetch_sessions))
_number(requests.REQUEST_MEMORY, lambda gathered: gathered.connections.memory.used)
_number(requests.REQUEST_MEMORY_WAITS, lambda gathered: gathered.connections.memory.waits)
_number(requests.THROTTLED_CONNECTIONS, lambda gathered: gathered.broker.counts.paused)
_number(requests.HELD_CONNECTIONS, lambda gathered: gathered.broker.counts.held)


@_reads(requests.THROTTLE_SECONDS)
def _throttle_seconds(gathered: Gathered) -> Iterator[Sample]:
    for quota, times in sorted(gathered.broker.counts.throttled.items()):
        yield (quota,), times


# Groups and transactions


@_reads(groups.CURRENT_OFFSET)
def _current_offset(gathered: Gathered) -> Iterator[Sample]:
    for each in gathered.lags.partitions:
        yield (each.group, each.topic, str(each.partition)), each.committed


@_reads(groups.LAG)
def _lag(gathered: Gathered) -> Iterator[Sample]:
    for each in gathered.lags.partitions:
        yield (each.group, each.topic, str(each.partition)), each.records
    if gathered.lags.unnamed:
        yield (OTHER, OTHER, OTHER), gathered.lags.other_records


@_reads(groups.LAG_SECONDS)
def _lag_seconds(gathered: Gathered) -> Iterator[Sample]:
    for each in gathered.lags.partitions:
        if each.seconds is not None:
            yield (each.group, each.topic, str(each.partition)), each.seconds


@_reads(groups.MEMBERS)
def _members(gathered: Gathered) -> Iterator[Sample]:
    for group, count in gathered.lags.members:
        yield (group,), count
    if gathered.lags.unnamed:
        yield (OTHER,), gathered.lags.other_members


_reads(groups.GROUPS)(lambda gathered: (((state,), count) for state, count in gathered.lags.states.items()))
_number(groups.OFFSETS, lambda gathered: gathered.lags.offsets)
_number(groups.REBALANCES, lambda gathered: gathered.broker.groups.rebalances)
_number(groups.UNNAMED_GROUPS, lambda gathered: gathered.lags.unnamed)
_reads(groups.TRANSACTIONS)(
    lambda gathered: (((state,), count) for state, count in gathered.transactions.items())
)
_number(groups.TRANSACTIONS_TIMED_OUT, lambda gathered: gathered.broker.transactions.timed_out)


@_reads(groups.TRANSACTIONS_ENDED)
def _transactions_ended(gathered: Gathered) -> Iterator[Sample]:
    yield ("commit",), gathered.broker.transactions.committed
    yield ("abort",), gathered.broker.transactions.aborted


# Plugins: what became of them, services, listeners, filters and validators


@_reads(plugins.PLUGIN)
def _plugins(gathered: Gathered) -> Iterator[Sample]:
    for each in gathered.broker.plugged.found:
        yield (each.name, each.version, each.became), 1


def _service(metric: Metric, value: Callable[[ServiceState], float]) -> None:
    _reads(metric)(
        lambda gathered: (
            ((each.plugin, each.name), value(each)) for each in gathered.broker.plugged.services
        )
    )


_service(plugins.UP, lambda service: service.up)
_service(plugins.RESTARTS, lambda service: service.restarts)
_service(plugins.BLOCKS, lambda service: service.blocks)


def _child(metric: Metric, value: Callable[[ChildState], float]) -> None:
    _reads(metric)(
        lambda gathered: (
            ((each.plugin, each.name), value(each))
            for each in list(gathered.broker.plugged.children.values())
        )
    )


_child(plugins.CHILD_UP, lambda child: child.up)
_child(plugins.CHILD_RESTARTS, lambda child: child.restarts)
_child(plugins.CHILD_MEMORY, lambda child: child.memory_bytes)


def _served(metric: Metric, value: Callable[[ServedCounts], float]) -> None:
    _reads(metric)(
        lambda gathered: (
            ((counts.plugin, prefix), value(counts))
            for prefix, counts in list(gathered.broker.plugged.counts.items())
        )
    )


_served(plugins.SERVED, lambda counts: counts.open)
_served(plugins.SERVED_ACCEPTED, lambda counts: counts.accepted)
_served(plugins.SERVED_REFUSED, lambda counts: counts.ends["refused"])
_served(plugins.SERVED_PAUSES, lambda counts: counts.ends["pause"])


@_reads(plugins.SERVED_ENDED)
def _served_ended(gathered: Gathered) -> Iterator[Sample]:
    for prefix, counts in list(gathered.broker.plugged.counts.items()):
        for end, count in counts.ended():
            yield (counts.plugin, prefix, end), count


def _judged(metric: Metric, setting: str, read: Callable[["Tally"], Iterable[tuple[str, int]]]) -> None:
    """A metric of what the filters, or validators, of topics have done; `read` has a label and a count for each sample,
    or an empty label."""

    def reading(gathered: Gathered) -> Iterator[Sample]:
        found: dict[tuple[str, ...], int] = {}
        named = {name for name, _ in gathered.topics}
        for (topic, kind, name), tally in list(gathered.broker.chains.tallies.items()):
            if kind == setting:
                for label, count in read(tally):
                    labels = (topic if topic in named else OTHER, name, *filter(None, [label]))
                    found[labels] = found.get(labels, 0) + count
        yield from found.items()

    _reads(metric)(reading)


def _verdicts(tally: "Tally") -> Iterable[tuple[str, int]]:
    gone = tally.changed + tally.dropped + tally.dead_lettered
    yield "kept", tally.taken - gone
    yield "changed", tally.changed
    yield "dropped", tally.dropped
    yield "dead_letter", tally.dead_lettered


_judged(plugins.FILTERED, chains.FILTERS, _verdicts)
_judged(plugins.FILTER_FAILURES, chains.FILTERS, lambda tally: [("", tally.failures)])
_judged(plugins.FILTER_NOT_READY, chains.FILTERS, lambda tally: [("", tally.not_ready)])
_judged(
    plugins.VALIDATED,
    chains.VALIDATORS,
    lambda tally: [("accepted", tally.taken), ("refused", tally.refused)],
)
_judged(plugins.VALIDATOR_FAILURES, chains.VALIDATORS, lambda tally: [("", tally.failures)])
_judged(plugins.VALIDATOR_NOT_READY, chains.VALIDATORS, lambda tally: [("", tally.not_ready)])


def _lettered(metric: Metric, read: Callable[[Gathered], dict[str, int]]) -> None:
    def reading(gathered: Gathered) -> Iterator[Sample]:
        found: dict[tuple[str, ...], int] = {}
        named = {name for name, _ in gathered.topics}
        for topic, count in list(read(gathered).items()):
            labels = (topic if topic in named else OTHER,)
            found[labels] = found.get(labels, 0) + count
        yield from found.items()

    _reads(metric)(reading)


_lettered(plugins.DEAD_LETTERS, lambda gathered: gathered.broker.dead_letters.written)
_lettered(plugins.DEAD_LETTERS_LOST, lambda gathered: gathered.broker.dead_letters.lost)


# The broker and its process

_reads(broker.BUILD)(lambda _: [((__version__, platform.python_version()), 1)])
_number(broker.BROKER_STATE, lambda gathered: _STOPPING if gathered.connections.stopping else _RUNNING)
_reads(broker.HEALTH)(
    lambda gathered: (((check.name,), found.fine) for check, found in gathered.health.findings().items())
)
_reads(broker.LOOP_DELAY)(lambda gathered: [((), gathered.broker.counts.loop_delay)])
_number(broker.START_SECONDS, lambda gathered: gathered.broker.logs.load_seconds)
_number(broker.CLEAN_START, lambda gathered: gathered.broker.logs.stopped_cleanly)
_number(broker.RECOVERED_PARTITIONS, lambda gathered: gathered.broker.logs.reread.partitions)
_number(broker.RECOVERED_BYTES, lambda gathered: gathered.broker.logs.reread.bytes)
_number(broker.WRITES_REFUSED, lambda gathered: gathered.broker.logs.refusal is not None)
_reads(broker.DISK_SIZE)(lambda gathered: [((), gathered.disk[0])] if gathered.disk else [])
_reads(broker.DISK_FREE)(lambda gathered: [((), gathered.disk[1])] if gathered.disk else [])
_number(broker.OPEN_LOG_FILES, lambda gathered: gathered.broker.logs.open_files)
_number(broker.CLEANER_ROUNDS, lambda gathered: gathered.broker.logs.cleaner.rounds)
_number(broker.CLEANER_READ, lambda gathered: gathered.broker.logs.cleaner.read_bytes)
_number(broker.CLEANER_WRITTEN, lambda gathered: gathered.broker.logs.cleaner.written_bytes)
_number(broker.CLEANER_REMOVED, lambda gathered: gathered.broker.logs.cleaner.removed_records)
_number(broker.CLEANER_SECONDS, lambda gathered: gathered.broker.logs.cleaner.busy_seconds)
_number(broker.CLEANER_WORKING, lambda gathered: gathered.broker.logs.cleaner.working)
_number(broker.UNCLEANABLE, lambda gathered: len(gathered.broker.logs.cleaner.uncleanable))
_number(broker.SCRAPE_SECONDS, lambda gathered: gathered.scrape_seconds)


def _process(metric: Metric) -> None:
    def reading(gathered: Gathered) -> list[Sample]:
        value = gathered.process.get(metric.name)
        return [] if value is None else [((), value)]

    _reads(metric)(reading)


for _metric in broker.PROCESS:
    if _metric is not broker.GC_COLLECTIONS:
        _process(_metric)


@_reads(broker.GC_COLLECTIONS)
def _gc_collections(_: Gathered) -> Iterator[Sample]:
    for generation, figures in enumerate(gc.get_stats()):
        yield (str(generation),), figures["collections"]
