"""Filters outside of a topic's chain, of a plugin in a real broker, and of a command without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leafcuttr_sdk import DROP, CliCommand, DeadLetter, PluginError, Record, Routed
from leafcuttr_sdk.testing import CommandResult, run_command, running_broker
from leafcuttr_sdk.testing.broker import RunningBroker

SOURCE = """
from leafcuttr_sdk import Plugin, PluginError, RecordFilterSpec, Routed, Setting, Type

PLUGIN = Plugin("router", 1, "Of a test.", enabled_by="lc.plugin.router.to.<word>")

def leafcuttr_register_settings():
    yield Setting(
        "lc.plugin.router.to.<word>", Type.STRING, None, "A topic.",
        check_member=lambda word, topic: None if word.islower() else "allowed are small letters",
    )

def leafcuttr_register_record_filters(settings):
    for word, topic in settings.family("lc.plugin.router.to.<word>").items():
        yield RecordFilterSpec(f"route-{word}", "routes a word", lambda context, topic=topic: Route(context, topic))

class Route:
    def __init__(self, context, topic):
        if not context.routes:
            raise PluginError("it routes records, which only a relay can do")
        self.topic = topic
        self.forgotten = 0

    def filter(self, record):
        return Routed(record, self.topic)
"""

TO = "lc.plugin.router.to.x"


@pytest.fixture
def broker(tmp_path: Path, plugins: Path):  # type: ignore[no-untyped-def]
    (plugins / "router.py").write_text(SOURCE)
    with running_broker(tmp_path / "data", {"lc.plugins.path": str(plugins), TO: "elsewhere"}) as broker:
        yield broker


def record(value: bytes) -> Record:
    return Record(value, timestamp=1)


def outcomes(broker: RunningBroker, names: tuple[str, ...], topic: str, *records: Record) -> list[object]:
    async def run(inside: object) -> list[object]:
        chain = await inside.record_filters(names, topic)  # type: ignore[attr-defined]
        try:
            assert chain.names == names
            return list(chain.filter(records))
        finally:
            chain.close()

    return broker.call(run)


def test_they_are_those_that_topics_name_with_the_settings_of_the_topic(broker: RunningBroker) -> None:
    broker.create_topic("words", configs={"lc.plugin.sieve.word": "hush"})
    given = (record(b"secret"), record(b"c"), record(b"d"), record(b"l"), record(b"hush"))
    assert outcomes(broker, ("mask", "sort"), "orders", *given) == [
        record(b"******"),
        record(b"C"),
        DROP,
        DeadLetter("it begins with an l", None, given[3], "sort"),
        given[4],
    ]
    assert outcomes(broker, ("mask",), "words", *given)[-1] == record(b"****")


def test_outside_of_a_topic_records_are_routed(broker: RunningBroker) -> None:
    assert outcomes(broker, ("route-x", "mask"), "t", record(b"a secret")) == [
        Routed(record(b"a ******"), "elsewhere")
    ]


def test_a_topic_of_such_a_filter_takes_no_records_and_health_says_why(broker: RunningBroker) -> None:
    broker.create_topic("routed", configs={"lc.filters": "route-x"})
    with pytest.raises(Exception, match="route-x: it routes records, which only a relay can do"):
        broker.produce("routed", b"a")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("maks", "there is no record filter maks; did you mean mask?"),
        ("broken", "record filter broken of topic t: no table of words at /no/where"),
        ("dumb", "record filter dumb of topic t: what it makes is an object and has no method filter"),
    ],
)
def test_what_cannot_be_made_is_one_line(broker: RunningBroker, name: str, line: str) -> None:
    with pytest.raises(PluginError) as raised:
        outcomes(broker, ("mask", name), "t")
    assert str(raised.value) == line


def test_a_broker_without_plugins_has_none(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path / "data") as broker,
        pytest.raises(
            PluginError, match="there is no record filter mask; no plugin that is on has a record filter"
        ),
    ):
        outcomes(broker, ("mask",), "t")


# Commands


def run(*words: str, **settings: str) -> CommandResult:
    import click

    from leafcuttr_sdk import command_context

    @click.command()
    @click.argument("names", nargs=-1)
    def command(names: tuple[str, ...]) -> None:
        context = command_context()
        given = {name.replace("_", "."): text for name, text in settings.items()}
        chain = context.record_filters(names, "t", given)
        outcomes = chain.filter([record(b"secret"), record(b"d")])
        chain.close()
        context.print_json([repr(one) for one in outcomes])

    return run_command(CliCommand("try", "tries", lambda: command), *words)


@pytest.fixture
def folder(plugins: Path) -> str:
    (plugins / "router.py").write_text(SOURCE)
    return str(plugins)


def test_a_command_has_them_without_a_broker(folder: str) -> None:
    done = run("mask", "sort", lc_plugins_path=folder)
    assert (done.status, json.loads(done.out)) == (0, [repr(record(b"******")), "DROP"])


def test_a_command_names_filters_by_settings_and_may_route(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_LC_PLUGINS_PATH", folder)
    done = run("route-x", lc_plugin_router_to_x="there")
    assert json.loads(done.out)[1] == repr(Routed(record(b"d"), "there"))


def test_what_is_wrong_ends_the_command_with_a_line(folder: str) -> None:
    off = run("route-x", lc_plugins_path=folder)
    assert (off.status, off.err) == (
        1,
        "leafcuttr: there is no record filter route-x; there are broken, dumb, mask, sort\n",
    )
    wrong = run("route-x", lc_plugins_path=folder, lc_plugin_router_to_X="there")
    assert wrong.status == 2 and "to.X=there (-o): allowed are small letters" in wrong.err
    broken = run("broken", lc_plugins_path=folder)
    assert broken.status == 1 and broken.err.endswith("no table of words at /no/where\n")
    (Path(folder) / "bad.py").write_text("import no_such_module\n")
    failed = run("other", lc_plugins_path=folder)
    assert failed.status == 1 and "there is no record filter other; plugin bad" in failed.err
