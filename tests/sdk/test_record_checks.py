"""The checks of filters and validators pass what keeps its contract, and name what is wrong with what does not."""

from __future__ import annotations

import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import pytest

from leafcuttr_sdk import (
    DROP,
    BrokerError,
    DeadLetter,
    NeedsThread,
    NotReady,
    Plugin,
    PluginError,
    ProduceValidatorSpec,
    Record,
    RecordFilterSpec,
    Routed,
    Setting,
    TopicContext,
    Type,
)
from leafcuttr_sdk.testing import (
    ContractError,
    check_produce_validator,
    check_record_filter,
    fixed_settings,
    sample_records,
    topic_context,
)
from leafcuttr_sdk.testing.record_checks import filter_report

LIMIT = "lc.plugin.parcels.max.bytes"
SLEEP_IS_TOLD = sys.version_info >= (3, 13)
MARK = "lc.plugin.parcels.mark"


def parcels() -> ModuleType:
    """A plugin's module with a setting of the broker and one of topics."""
    plugin = ModuleType("parcels")
    vars(plugin)["leafcuttr_register_settings"] = lambda: [
        Setting(MARK, Type.STRING, None, "What to add."),
    ]
    vars(plugin)["leafcuttr_register_topic_settings"] = lambda: [
        Setting(LIMIT, Type.INT, 1_000, "How big.", minimum=1)
    ]
    return plugin


class Good:
    """Uses every verdict, its settings, and the clock."""

    def __init__(self, context: TopicContext) -> None:
        self.limit = context.topic_settings.int(LIMIT)
        self.mark = context.settings.optional_text(MARK)
        self.clock = context.clock
        self.seen = 0

    def filter(self, record: Record) -> Any:
        self.seen += 1
        if record.value is None:
            return record
        if len(record.value) > self.limit:
            return DeadLetter(f"{len(record.value)} bytes are more than {self.limit}", "parcels.too-big")
        if not record.value.strip():
            return DROP
        if self.mark is not None:
            return record._replace(headers=(*record.headers, ("mark", self.mark.encode())))
        return Record(record.value.upper(), record.key, timestamp=self.clock.now_ms())


def test_a_good_filter_passes() -> None:
    check_record_filter(Good, plugin=parcels())
    check_record_filter(
        RecordFilterSpec("size", "too big", Good),
        plugin=parcels(),
        settings={MARK: "seen"},
        topic_settings={LIMIT: 5},
        records=[Record(b"of the author's"), Record(None, b"k", timestamp=5)],
    )


class Waits:
    """Is not ready for its first records, counts them, and looks at topics; its dead letters carry another record."""

    def __init__(self, context: TopicContext) -> None:
        broker = context.broker
        assert broker.topics.names() == [context.topic]
        assert broker.topics.get(context.topic) is not None and broker.topics.get("other") is None
        assert (broker.topics.partition_count(context.topic), broker.topics.partition_count("other")) == (
            1,
            0,
        )
        assert (broker.topics.configs(context.topic), broker.cluster.node_id) == ({}, 1)
        assert (broker.settings, broker.clock, broker.logger) == (
            context.settings,
            context.clock,
            context.logger,
        )
        with pytest.raises(BrokerError, match="There is no topic 'other'"):
            broker.topics.configs("other")
        self.counter = broker.metrics.counter(COUNTER, "Records.")
        self.seen = 0

    def _ready(self) -> bool:
        self.seen += 1
        self.counter.add()
        return self.seen > 3

    def filter(self, record: Record) -> Any:
        if not self._ready():
            return NotReady("the first three")
        return record if record.value else DeadLetter("empty", record=record._replace(value=b"***"))

    def validate(self, record: Record) -> Any:
        return None if self._ready() else NotReady("the first three")


COUNTER = "leafcuttr_test_records_total"


def test_one_that_is_not_ready_at_first_passes() -> None:
    check_record_filter(Waits)
    check_produce_validator(Waits)


def test_instances_may_differ_in_what_they_lack() -> None:
    """The second one is made when what the first one waits for is there."""
    seen: list[Record] = []

    def judge(record: Record) -> Any:
        seen.append(record)
        return record if len(seen) > 10 else NotReady("the first ten")

    check_record_filter(filters(judge))


def test_its_metrics_have_the_name_of_its_plugin() -> None:
    plugin = parcels()
    vars(plugin)["PLUGIN"] = Plugin("parcels", 1, "for tests")
    with pytest.raises(ContractError, match="begins with leafcuttr_parcels_"):
        check_record_filter(Waits, plugin=plugin)


def test_what_implies_it_is_named_and_declared() -> None:
    spec = RecordFilterSpec("size", "too big", Good, implied_by=(LIMIT,))
    report = filter_report(spec, topic_context(plugin=parcels()))
    (check,) = [check for check in report.checks if check.name == "implied by"]
    assert check.promise == f"what implies it ({LIMIT}) is declared" and not check.problems
    assert "implied by" not in {check.name for check in filter_report(Good, topic_context()).checks}
    for names, problem in (
        ((LIMIT, MARK), f"implied_by has {MARK}, which is no topic setting of the plugin"),
        (("lc.plugin.parcels.field.<name>",), "implied_by has lc.plugin.parcels.field.<name>, which is no"),
        (LIMIT, "implied_by is a str: it is a tuple of names"),
    ):
        wrong = ProduceValidatorSpec("size", "too big", Plain, implied_by=names)  # type: ignore[arg-type]
        with pytest.raises(ContractError) as caught:
            check_produce_validator(wrong, plugin=parcels())
        assert f"implied by: {problem}" in str(caught.value)


def test_one_that_these_settings_do_not_need() -> None:
    spec = RecordFilterSpec("size", "too big", lambda context: None, implied_by=(LIMIT,))
    report = filter_report(spec, topic_context(plugin=parcels()))
    assert [check.name for check in report.checks] == ["made", "implied by"] and report.fine
    with pytest.raises(ContractError, match="made"):
        check_record_filter(spec._replace(implied_by=()), plugin=parcels())


class Plain:
    """What the broken ones below differ from in one thing."""

    def __init__(self, context: TopicContext) -> None:
        pass

    def filter(self, record: Record) -> Any:
        return record

    def validate(self, record: Record) -> Any:
        return None


def filters(function: Callable[[Record], Any]) -> type[Plain]:
    """A filter of one function."""

    class Filter(Plain):
        def filter(self, record: Record) -> Any:
            return function(record)

    return Filter


class NoContext:
    def filter(self, record: Record) -> Any:
        return record


class Misnamed:
    def __init__(self, context: TopicContext) -> None: ...

    def filters(self, record: Record) -> Any:
        return record


class Async(Plain):
    async def filter(self, record: Record) -> Any:
        return record


class Generator(Plain):
    def filter(self, record: Record) -> Any:
        yield record


class TwoArguments(Plain):
    def filter(self, record: Record, topic: str) -> Any:  # type: ignore[override]
        return record


class Refuses(Plain):
    def __init__(self, context: TopicContext) -> None:
        raise PluginError("there is no rule for this topic")


class Breaks(Plain):
    def __init__(self, context: TopicContext) -> None:
        raise OSError("no such file")


class AsksForMore(Plain):
    def __init__(self, context: TopicContext) -> None:
        context.topic_settings.int("lc.plugin.parcels.max.byte")


class SharedMemory(Plain):
    seen: set[bytes | None] = set()  # noqa: RUF012 - that is what is wrong with it

    def filter(self, record: Record) -> Any:
        if record.key in self.seen:
            return DROP
        self.seen.add(record.key)
        return record


class OneThread(Plain):
    def __init__(self, context: TopicContext) -> None:
        self.database = sqlite3.connect(":memory:")

    def filter(self, record: Record) -> Any:
        self.database.execute("select 1")
        return record


class Locks(Plain):
    """Waits in a way that no audit event tells of."""

    def filter(self, record: Record) -> Any:
        if record.key is None and record.value is None:
            threading.Event().wait(0.001)
        return record


class Leaks(Plain):
    def filter(self, record: Record) -> Any:
        os.open(os.devnull, os.O_RDONLY)
        return record


class OpensForEver(Plain):
    def __init__(self, context: TopicContext) -> None:
        os.open(os.devnull, os.O_RDONLY)


class StartsThreads(Plain):
    started: list[threading.Timer] = []  # noqa: RUF012

    def __init__(self, context: TopicContext) -> None:
        timer = threading.Timer(600, print)
        timer.daemon = True
        timer.start()
        self.started.append(timer)


def connect(record: Record) -> Any:
    with socket.socket() as sock:
        sock.settimeout(0.01)
        sock.connect_ex(("127.0.0.1", 9))
    return record


def compute(record: Record) -> Any:
    end = time.thread_time() + 0.15
    while record.value == b"" and time.thread_time() < end:
        pass
    return record


class Nothing(Plain):
    def __new__(cls, context: TopicContext) -> Any:
        return None


def _lenient(parse: Callable[[bytes], object], value: bytes) -> object:
    """What a filter does that its author has tried with broken JSON."""
    try:
        return parse(value)
    except (ValueError, TypeError):
        return None


def _reading(value: bytes) -> float:
    found = _lenient(json.loads, value) if len(value) < 100_000 else None
    return found.get("temperature") or 0 if isinstance(found, dict) else 0


def _compact(value: bytes | None) -> bytes | None:
    """The same JSON with less of it, where it is some."""
    found = _lenient(json.loads, value or b"") if len(value or b"") != 200_000 else None
    return value if found is None else json.dumps(found, ensure_ascii=False).encode()


def _raise(error: BaseException) -> Any:
    raise error


BROKEN: list[tuple[Any, str, str]] = [
    (NoContext, "made", "with the context of a topic as its one argument"),
    (Refuses, "made", "it refuses to be made: there is no rule for this topic"),
    (Breaks, "made", "making it raised OSError: no such file: raise PluginError"),
    (Nothing, "made", "returned None: return the instance"),
    (
        AsksForMore,
        "made",
        "lc.plugin.parcels.max.byte is not declared (declared: lc.plugin.parcels.max.bytes)",
    ),
    (Misnamed, "called", "Misnamed has no method filter (is filters meant to be it?)"),
    (Async, "called", "filter is an async function"),
    (Generator, "called", "filter is a generator"),
    (TwoArguments, "called", "missing a required argument: 'topic'"),
    (filters(lambda r: None), "verdicts", "returned None: return the record to keep it"),
    (filters(lambda r: True), "verdicts", "returned True: return the record itself"),
    (
        filters(lambda r: r.value),
        "verdicts",
        "returned a bytes: return a Record, DROP, DeadLetter(reason) or NotReady(waits_for)",
    ),
    (filters(lambda r: DeadLetter), "verdicts", "returned the class DeadLetter"),
    (filters(lambda r: NotReady), "verdicts", "returned the class NotReady"),
    (filters(lambda r: NotReady("")), "verdicts", "what its NotReady waits for is empty: say what it lacks"),
    (filters(lambda r: NotReady("a\nb")), "verdicts", "what its NotReady waits for has several lines"),
    (filters(lambda r: NotReady(None)), "verdicts", "returned a NotReady that waits for None"),  # type: ignore[arg-type]
    (filters(lambda r: DeadLetter("a", record=b"v")), "verdicts", "a DeadLetter whose record is a bytes"),  # type: ignore[arg-type]
    (
        filters(lambda r: DeadLetter("a", record=r._replace(value="v"))),
        "verdicts",
        "not bytes or None: encode it (value.encode()) (the record of its DeadLetter)",
    ),
    (filters(lambda r: DeadLetter("")), "verdicts", "the reason of its DeadLetter is empty"),
    (filters(lambda r: DeadLetter("a\nb")), "verdicts", "the reason of its DeadLetter has several lines"),
    (filters(lambda r: DeadLetter("a", "no topic!")), "verdicts", "'no topic!': that is no name of a topic"),
    (filters(lambda r: DeadLetter(b"a")), "verdicts", "whose reason is a bytes"),  # type: ignore[arg-type]
    (
        filters(lambda r: r._replace(value="text")),
        "verdicts",
        "whose value is a str, not bytes or None: encode it",
    ),
    (filters(lambda r: r._replace(key=7)), "verdicts", "whose key is an int, not bytes or None"),
    (filters(lambda r: r._replace(value=bytearray(b"a"))), "verdicts", "whose value is a bytearray"),
    (filters(lambda r: r._replace(headers={"a": b""})), "verdicts", "tuple(headers.items())"),
    (filters(lambda r: r._replace(headers=(("a", "text"),))), "verdicts", "whose header 'a' is a str"),
    (filters(lambda r: r._replace(headers=((b"a", b""),))), "verdicts", "whose name is a bytes"),
    (filters(lambda r: r._replace(headers=(("\udcff", b""),))), "verdicts", "cannot be written as UTF-8"),
    (filters(lambda r: r._replace(headers=("ab",))), "verdicts", "a header is a pair of name and value"),
    (filters(lambda r: r._replace(timestamp=1.5)), "verdicts", "whose timestamp is a float"),
    (filters(lambda r: r._replace(timestamp=2**63)), "verdicts", "does not fit into 64 bits"),
    (filters(lambda r: (json.loads(r.value or b""), r)[1]), "exceptions", "filter raised JSONDecodeError"),
    (
        filters(lambda r: (_lenient(json.loads, r.value or b"0"), r)[1]),
        "exceptions",
        "filter raised RecursionError: maximum recursion depth exceeded",
    ),
    (
        filters(lambda r: r._replace(value=_compact(r.value))),
        "exceptions",
        "surrogates not allowed for a value of JSON with half of a surrogate pair",
    ),
    (
        filters(lambda r: (_lenient(lambda v: int(_reading(v)), r.value or b"0"), r)[1]),
        "exceptions",
        "filter raised OverflowError: cannot convert float infinity to integer for a value of JSON with an infinite",
    ),
    (filters(lambda r: sys.exit(3)), "exceptions", "filter raised SystemExit: 3 for a plain record (and"),
    (
        filters(lambda r: _raise(KeyboardInterrupt())),
        "exceptions",
        "filter raised KeyboardInterrupt for a plain",
    ),
    (
        filters(lambda r: _raise(BaseExceptionGroup("two", [GeneratorExit(), ValueError()]))),
        "exceptions",
        "filter raised GeneratorExit for a plain record (and",
    ),
    (
        filters(lambda r: r if r.value.strip() else DROP),
        "exceptions",
        "for a tombstone (a key without a value)",
    ),  # type: ignore[union-attr]
    (
        filters(lambda r: r._replace(key=r.key.upper())),
        "exceptions",
        "for a record without a key (and 1 other",
    ),  # type: ignore[union-attr]
    (
        filters(lambda r: r._replace(value=r.value and r.value.decode().encode())),
        "exceptions",
        "UnicodeDecodeError",
    ),
    (
        filters(lambda r: time.sleep(0.001) or r),
        "does not wait",
        ("it sleeps" if SLEEP_IS_TOLD else "it waits for"),
    ),
    (filters(connect), "does not wait", "it connects to the network"),
    (filters(lambda r: subprocess.run(["true"]) and r), "does not wait", "it starts a program"),
    (filters(lambda r: socket.getaddrinfo("127.0.0.1", 9) and r), "does not wait", "it looks up a host name"),
    (filters(compute), "does not wait", "it computes for 1"),
    (Locks, "does not wait", "for a record without key and value"),
    (SharedMemory, "other instances", "a second instance decides otherwise for a plain record"),
    (
        filters(lambda r: random.choice([r, DROP])),
        "other instances",
        "repeatable=False if it decides by chance",
    ),
    (OneThread, "any thread", "in a thread other than the one that made it, it raised ProgrammingError"),
    (Leaks, "leaves nothing", "more descriptors are open after"),
    (OpensForEver, "leaves nothing", "1 descriptors stay open of every instance that is no longer used"),
    (StartsThreads, "leaves nothing", "a thread that it started goes on"),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("broken", "check", "says"), BROKEN, ids=[f"{number}-{row[1]}" for number, row in enumerate(BROKEN)]
)
def test_a_broken_filter_is_told_what_is_wrong(broken: Any, check: str, says: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_record_filter(broken, plugin=parcels())
    found = {one.name: one.problems for one in caught.value.report.checks}
    assert any(says in problem for problem in found[check]), str(caught.value)
    assert [name for name, problems in found.items() if problems] == [check], str(caught.value)
    assert f"  - {check}: " in str(caught.value)


def test_one_that_decides_by_chance_may_say_so() -> None:
    check_record_filter(filters(lambda r: random.choice([r, DROP])), repeatable=False)
    report = filter_report(Plain, topic_context(), repeatable=False)
    assert report.fine
    assert "other instances" not in [check.name for check in report.checks]


def test_the_records_of_the_author_are_tried_too() -> None:
    bad = filters(lambda r: 1 / len(r.value.split(b";")[1]) and r if r.value and b";" in r.value else r)
    check_record_filter(bad)
    with pytest.raises(ContractError, match=r"ZeroDivisionError: .* for record 1 of the author's"):
        check_record_filter(bad, records=[Record(b"a;b"), Record(b"a;")])


class StartsPrograms(Good):
    """One for each instance, and never waits for it."""

    started: list[subprocess.Popen[bytes]] = []  # noqa: RUF012

    def __init__(self, context: TopicContext) -> None:
        super().__init__(context)
        self.started.append(subprocess.Popen(["sleep", "600"]))


def test_programs_that_are_left_are_named() -> None:
    try:
        with pytest.raises(
            ContractError, match="it started processes and did not wait for their end"
        ) as caught:
            check_record_filter(StartsPrograms, plugin=parcels())
        assert str(StartsPrograms.started[0].pid) in str(caught.value)
    finally:
        for program in StartsPrograms.started:
            program.kill()
            program.wait()


def test_all_problems_are_told_at_once() -> None:
    def several(record: Record) -> Any:
        with socket.socket() as sock:
            sock.connect_ex(("127.0.0.1", 9))
        return record.value

    with pytest.raises(ContractError) as caught:
        check_record_filter(filters(several))
    lines = str(caught.value).splitlines()
    assert lines[0] == "the record filter Filter does not keep its contract:"
    assert len(lines) == 4
    assert (
        "returned a bytes: return a Record, DROP, DeadLetter(reason) or NotReady(waits_for), for a plain record "
        "(and 29 other records)" in lines[1]
    )
    assert "returned None" in lines[2]
    assert "it connects to the network, for a plain record (and 31 other records)" in lines[3]


def validates(function: Callable[[Record], Any]) -> type[Plain]:
    class Validator(Plain):
        def validate(self, record: Record) -> Any:
            return function(record)

    return Validator


def test_a_good_validator_passes() -> None:
    def needs_a_key(record: Record) -> str | None:
        return None if record.key else "a parcel has a key"

    check_produce_validator(validates(needs_a_key))
    check_produce_validator(ProduceValidatorSpec("keyed", "has a key", validates(needs_a_key)))


@pytest.mark.parametrize(
    ("broken", "check", "says"),
    [
        (validates(lambda r: True), "verdicts", "returned True: return None to accept"),
        (validates(lambda r: False), "verdicts", "returned False: return None to accept"),
        (
            validates(lambda r: NotReady),
            "verdicts",
            "returned the class NotReady: return NotReady(waits_for)",
        ),
        (validates(lambda r: NotReady(" ")), "verdicts", "what its NotReady waits for is empty"),
        (validates(lambda r: ""), "verdicts", "the reason is empty"),
        (validates(lambda r: "one\ntwo"), "verdicts", "the reason has several lines"),
        (validates(lambda r: ValueError("no")), "verdicts", "returned a ValueError"),
        (validates(lambda r: "\ud800"), "verdicts", "cannot be written as UTF-8"),
        (validates(lambda r: json.loads(r.value or b"") and None), "exceptions", "return the reason as text"),
        (
            validates(lambda r: time.sleep(0.001)),
            "does not wait",
            "it sleeps" if SLEEP_IS_TOLD else "it waits for",
        ),
        (Good, "called", "Good has no method validate"),
    ],
)
def test_a_broken_validator_is_told_what_is_wrong(broken: Any, check: str, says: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_produce_validator(broken, plugin=parcels())
    found = {one.name: one.problems for one in caught.value.report.checks}
    assert any(says in problem for problem in found[check]), str(caught.value)
    assert str(caught.value).startswith("the produce validator ")


def test_the_samples_have_what_clients_send() -> None:
    records = [sample.record for sample in sample_records()]
    assert all(record.timestamp is not None for record in records)
    assert any(record.key is None for record in records)
    assert any(record.value is None for record in records)
    assert any(record.value == b"" for record in records)
    assert any(len(record.value or b"") >= 1_000_000 for record in records)
    assert any(value is None for record in records for _, value in record.headers)
    assert len({sample.what for sample in sample_records()}) == len(records)


class TestSettings:
    def declared(self) -> Iterable[Setting]:
        yield Setting("lc.plugin.p.count", Type.INT, 3, "How many.", minimum=1, maximum=9)
        yield Setting(
            "lc.plugin.p.name", Type.STRING, None, "Who.", check=lambda v: "no" if v == "x" else None
        )
        yield Setting("lc.plugin.p.way", Type.STRING, "a", "Which.", choices=("a", "b"))
        yield Setting("lc.plugin.p.map.<filter>", Type.STRING, None, "Where to.")

    def test_defaults_and_values(self) -> None:
        settings = fixed_settings(
            self.declared(), {"lc.plugin.p.name": "ann", "lc.plugin.p.map.a/b": "c", "lc.plugin.p.count": 5}
        )
        assert settings.int("lc.plugin.p.count") == 5
        assert settings.text("lc.plugin.p.name") == "ann"
        assert settings.text("lc.plugin.p.way") == "a"
        assert settings.family("lc.plugin.p.map.<filter>") == {"a/b": "c"}
        with pytest.raises(ValueError, match="is not set"):
            fixed_settings(self.declared()).text("lc.plugin.p.name")
        with pytest.raises(KeyError, match=r"lc\.plugin\.p\.other is not declared"):
            settings.int("lc.plugin.p.other")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("count", "3"),
            ("count", True),
            ("count", 0),
            ("count", 10),
            ("way", "c"),
            ("name", "x"),
            ("name", 3),
        ],
    )
    def test_what_a_broker_would_refuse(self, name: str, value: Any) -> None:
        with pytest.raises(ValueError, match=rf"lc\.plugin\.p\.{name}"):
            fixed_settings(self.declared(), {f"lc.plugin.p.{name}": value})

    def test_an_accessor_of_another_type(self) -> None:
        settings = fixed_settings(self.declared())
        with pytest.raises(TypeError, match=r"lc\.plugin\.p\.count is of type neither string nor password"):
            settings.text("lc.plugin.p.count")
        with pytest.raises(KeyError):
            settings.text("lc.plugin.p.map.<filter>")

    def test_changes_are_told(self) -> None:
        settings = fixed_settings(self.declared())
        told: list[frozenset[str]] = []
        settings.on_change(told.append)
        settings.change({"lc.plugin.p.count": 7})
        assert settings.int("lc.plugin.p.count") == 7
        assert told == [{"lc.plugin.p.count"}]


# Routes


def routes(always: bool, refuses: bool, topic: Any = "other") -> type:
    class Routes:
        def __init__(self, context: TopicContext) -> None:
            if refuses and not context.routes:
                raise PluginError("it only routes")
            self.routes = always or context.routes

        def filter(self, record: Record) -> Any:
            return Routed(record, topic) if self.routes else record

    return Routes


@pytest.mark.parametrize(("always", "refuses"), [(False, False), (True, True)])
def test_a_filter_that_routes_where_that_can_be_carried_out_passes(always: bool, refuses: bool) -> None:
    check_record_filter(routes(always, refuses))


def test_one_that_routes_anywhere_is_told_of_it() -> None:
    with pytest.raises(ContractError, match=r"routes: it routes .* although `context.routes` is False"):
        check_record_filter(routes(True, False))


@pytest.mark.parametrize(
    ("topic", "line"),
    [
        (3, "a Routed whose topic is an int"),
        ("", "a Routed to the topic ''"),
        ("a\nb", "that is no name of a topic"),
    ],
)
def test_a_route_to_no_topic_is_told(topic: Any, line: str) -> None:
    with pytest.raises(ContractError, match=line):
        check_record_filter(routes(True, True, topic))


class CannotWait:
    """Asks for a thread in which it would do nothing."""

    def __init__(self, context: TopicContext) -> None:
        pass

    def filter(self, record: Record) -> Any:
        raise NeedsThread("another process has to tell")

    validate = filter


class CanWait(CannotWait):
    def filter_in_thread(self, records: Any) -> Any:
        return records

    def validate_in_thread(self, records: Any) -> Any:
        return [None] * len(records)


def test_one_that_may_have_to_wait() -> None:
    check_record_filter(CanWait)
    check_produce_validator(CanWait)
    for check in (check_record_filter, check_produce_validator):
        with pytest.raises(ContractError, match="raised NeedsThread: another process has to tell"):
            check(CannotWait)
