"""Validators and filters that topic settings of their plugin imply: their order, and what becomes of a topic that has
such a setting while the plugin is off or gone."""

from __future__ import annotations

import json
import threading
import urllib.request
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaException

from leafcuttr.cli.root import cli
from leafcuttr.wire.records import Record as Stored
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk import BrokerError, ProduceValidatorSpec, Record, RecordFilterSpec, TopicContext
from leafcuttr_sdk.testing import running_broker as broker_here
from support import librdkafka
from support.broker_process import BrokerProcess, running_broker
from support.wire_client import WireClient

NOW = 1_700_000_000_000
ON = "lc.plugin.stamps.on"
CHECK = "lc.plugin.stamps.check"
MARK = "lc.plugin.stamps.mark"
OFF_LINE = f"of plugin stamps, which is off: {ON}=true switches it on"

SOURCE = """
from leafcuttr_sdk import Plugin, ProduceValidatorSpec, RecordFilterSpec, Setting, Type

PLUGIN = Plugin(name="stamps", api_version=1, summary="Marks records.", enabled_by="lc.plugin.stamps.on")


def leafcuttr_register_settings():
    yield Setting("lc.plugin.stamps.on", Type.BOOLEAN, False, "Whether it is on.")
    yield Setting("lc.plugin.stamps.mark", Type.STRING, None, "What to add.", dynamic=True)


def leafcuttr_register_topic_settings():
    yield Setting("lc.plugin.stamps.check", Type.BOOLEAN, False, "Whether records are checked.")
    yield Setting("lc.plugin.stamps.mark", Type.STRING, None, "What to add.")
    yield Setting("lc.plugin.stamps.swap.<letter>", Type.STRING, None, "What takes the place of a letter.")


def leafcuttr_register_record_filters():
    yield RecordFilterSpec("b", "adds a b", lambda context: Adds(b"b"))
    yield RecordFilterSpec("mark", "adds the mark", Mark, implied_by=("lc.plugin.stamps.mark",))
    yield RecordFilterSpec("swap", "swaps letters", Swap, implied_by=("lc.plugin.stamps.swap.<letter>",))


def leafcuttr_register_produce_validators():
    yield ProduceValidatorSpec("check", "refuses what has an x", Check, implied_by=("lc.plugin.stamps.check",))


class Adds:
    def __init__(self, what):
        self.what = what

    def filter(self, record):
        return record._replace(value=record.value + self.what)


class Mark(Adds):
    def __init__(self, context):
        super().__init__((context.topic_settings.optional_text("lc.plugin.stamps.mark") or "-").encode())


class Swap:
    def __init__(self, context):
        self.letters = context.topic_settings.family("lc.plugin.stamps.swap.<letter>")

    def filter(self, record):
        value = record.value
        for old, new in self.letters.items():
            value = value.replace(old.encode(), new.encode())
        return record._replace(value=value)


class Check:
    def __init__(self, context):
        pass

    def validate(self, record):
        return "it has an x" if b"x" in record.value else None
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of the plugin."""
    found = tmp_path / "stamps"
    found.mkdir()
    (found / "stamps.py").write_text(SOURCE)
    return found


def on(folder: Path, **more: str) -> dict[str, str]:
    return {"lc.plugins.path": str(folder), ON: "true", **more}


def send(broker: BrokerProcess, topic: str, value: bytes) -> Any:
    with WireClient(broker.address) as wire:
        return wire.produce(topic, encode_batch([Stored(0, NOW, b"k", value)]))


def values(broker: BrokerProcess, topic: str, count: int) -> list[Any]:
    return [message.value() for message in librdkafka.read(broker.address, topic, count)]


def create(broker: BrokerProcess, topic: str, **settings: str) -> None:
    """Names of settings with `_` for `.`; those of the plugin without what they begin with."""
    ours = ("check", "mark", "swap")
    librdkafka.create(
        broker.address,
        topic,
        1,
        **{f"lc_plugin_stamps_{n}" if n.startswith(ours) else n: value for n, value in settings.items()},
    )


def refusal(broker: BrokerProcess, topic: str) -> str:
    answer = send(broker, topic, b"1")
    assert answer.error_code == -1
    return str(answer.error_message).removeprefix(f"Topic {topic} takes no records at present: ")


def test_it_stands_before_what_is_named(tmp_path: Path, folder: Path) -> None:
    with running_broker(tmp_path, on(folder)) as broker:
        create(broker, "checked", check="true")
        create(broker, "marked", mark="m", lc_filters="b")
        create(broker, "both", mark="m", lc_filters="b,mark")
        create(broker, "swapped", swap_m="n", mark="m", check="true")
        create(broker, "none", lc_filters="")
        for topic in ("checked", "marked", "both", "swapped", "none"):
            assert send(broker, topic, b"1").error_code == 0
        assert [values(broker, topic, 1) for topic in ("checked", "marked", "both", "swapped", "none")] == [
            [b"1"],
            [b"1mb"],
            [b"1mb"],  # once, and before
            [b"1n"],  # in the order in which the plugin's hook has them
            [b"1"],
        ]
        for topic, code in (("checked", 87), ("swapped", 87), ("marked", 0)):
            assert send(broker, topic, b"x").error_code == code


def test_it_comes_and_goes_with_the_setting(tmp_path: Path, folder: Path) -> None:
    with running_broker(tmp_path, on(folder)) as broker:
        create(broker, "t")
        address = broker.address
        for change, code in (
            ({CHECK: "true"}, 87),
            ({CHECK: "FALSE"}, 0),  # its default, given
            ({CHECK: "true", "lc.validators": ""}, 87),
            ({CHECK: None}, 0),
        ):
            librdkafka.alter(address, "topic", "t", change)  # type: ignore[arg-type]
            assert send(broker, "t", b"x").error_code == code, change
        librdkafka.alter(address, "topic", "t", {"lc.plugin.stamps.swap.1": "2"})
        assert send(broker, "t", b"1").error_code == 0
        librdkafka.alter(address, "topic", "t", {"lc.plugin.stamps.swap.1": None})
        assert send(broker, "t", b"1").error_code == 0
        assert values(broker, "t", 4)[2:] == [b"2", b"1"]
        # The broker's setting of the same name is the default of topics.
        librdkafka.alter(address, "broker", "1", {MARK: "m"})
        create(broker, "later")
        for topic in ("t", "later"):
            assert send(broker, topic, b"1").error_code == 0
        assert values(broker, "later", 1) == [b"1m"]
        assert values(broker, "t", 5)[4] == b"1m"


@pytest.mark.long
def test_while_the_plugin_is_off(tmp_path: Path, folder: Path) -> None:
    with running_broker(tmp_path, on(folder)) as broker:
        create(broker, "t", check="true")
        create(broker, "m", mark="m")
        create(broker, "s", swap_a="b")
        create(broker, "free", check="false")
    with running_broker(tmp_path, on(folder, **{ON: "false"})) as broker:
        line = f"it has {CHECK}, and for that it needs the produce validator check {OFF_LINE}"
        assert refusal(broker, "t") == line
        assert f"topic t takes no records: {line}" in broker.log
        assert (
            refusal(broker, "m") == f"it has {MARK}, and for that it needs the record filter mark {OFF_LINE}"
        )
        assert "lc.plugin.stamps.swap.a, and for that it needs the record filter swap" in refusal(broker, "s")
        assert send(broker, "free", b"x").error_code == 0
        address = json.loads((broker.folder / "ready.json").read_text())["metrics"]
        with urllib.request.urlopen(f"http://{address}/health", timeout=60) as response:
            check = json.loads(response.read())["checks"]["filters"]
        assert check["detail"] == "without their filters, taking no records: m, s, t"
        # Nobody can set it either; what is there may stay, and go.
        for setting, value, part in (
            (CHECK, "true", "produce validator check"),
            ("lc.plugin.stamps.swap.a", "b", "record filter swap"),
        ):
            said = f"Invalid value {value} for configuration {setting}: it needs the {part} {OFF_LINE}"
            with pytest.raises(KafkaException) as refused:
                librdkafka.alter(broker.address, "topic", "free", {setting: value})
            assert refused.value.args[0].str() == said
        with pytest.raises(
            KafkaException, match=f"for configuration {MARK}: it needs the record filter mark"
        ):
            librdkafka.alter(broker.address, "broker", "1", {MARK: "m"})
        librdkafka.alter(broker.address, "topic", "t", {"retention.ms": "100000"})
        assert refusal(broker, "t") == line
        librdkafka.alter(broker.address, "topic", "t", {CHECK: "false"})
        assert send(broker, "t", b"x").error_code == 0
    with running_broker(tmp_path, on(folder)) as broker:
        assert send(broker, "m", b"1").error_code == 0
        assert values(broker, "m", 1) == [b"1m"]


def test_a_plugin_that_was_never_on(tmp_path: Path, folder: Path) -> None:
    with running_broker(tmp_path, on(folder, **{ON: "false"})) as broker, pytest.raises(KafkaException):
        create(broker, "t", check="true")


@pytest.mark.long
def test_a_bundled_plugin_is_asked_once_a_topic_has_its_setting(tmp_path: Path) -> None:
    """While it is off; before that its specifications are not even imported."""
    specs = "import 'leafcuttr_registry.validation.specs' # "
    on, checked = "lc.schema.registry.enable", "lc.schema.validation.value"
    with running_broker(tmp_path, {on: "true"}) as broker:
        librdkafka.create(broker.address, "t", 1, **{checked.replace(".", "_"): "id"})
        librdkafka.create(broker.address, "free", 1)
    with running_broker(tmp_path, environ={"PYTHONVERBOSE": "1"}) as broker:
        assert broker.log.count(specs) == 1  # for `t`
        needs = "it needs the produce validator schema-id-key of plugin registry, which is off"
        assert refusal(broker, "t").startswith(f"it has {checked}, and for that {needs}")
        librdkafka.delete(broker.address, "t")
    with running_broker(tmp_path, environ={"PYTHONVERBOSE": "1"}) as broker:
        assert send(broker, "free", b"1").error_code == 0
        assert broker.log.count(specs) == 1  # the log goes on
        with pytest.raises(KafkaException, match=needs):
            librdkafka.alter(broker.address, "topic", "free", {checked: "id"})
        assert broker.log.count(specs) == 2
        assert send(broker, "free", b"1").error_code == 0


def test_a_plugin_that_has_always_failed_in_another_part(tmp_path: Path, folder: Path) -> None:
    failing = "def leafcuttr_register_services():\n    1 / 0\n"
    (folder / "stamps.py").write_text(SOURCE + failing)
    with running_broker(tmp_path, on(folder)) as broker:
        create(broker, "t")
        with pytest.raises(
            KafkaException, match="of plugin stamps, which is failed: leafcuttr_register_services"
        ):
            librdkafka.alter(broker.address, "topic", "t", {CHECK: "true"})


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", ["gone", "disabled", "broken", "hook fails"])
def test_while_the_plugin_is_gone(tmp_path: Path, folder: Path, how: str) -> None:
    """Its settings are unknown then, or what they imply."""
    with running_broker(tmp_path, on(folder)) as broker:
        create(broker, "t", check="true")
        create(broker, "s", swap_a="b")
        create(broker, "two", check="true", swap_a="b")
        create(broker, "free", check="false")
    settings = on(folder)
    if how == "gone":
        del settings["lc.plugins.path"], settings[ON]
        said = "which is not installed"
    elif how == "disabled":
        settings["lc.plugins.disabled"] = "stamps"
        said = "which is disabled: "
    elif how == "broken":
        (folder / "stamps.py").write_text("raise RuntimeError('no stamps')")
        said = "which is failed: "
    else:
        hook = "def leafcuttr_register_produce_validators():\n"
        (folder / "stamps.py").write_text(SOURCE.replace(hook, f"{hook}    1 / 0\n"))
        said = "which is failed: "
    for _ in range(2):  # it is still known at the start after
        with running_broker(tmp_path, settings) as broker:
            line = (
                f"it has {CHECK}, and for that it needs the produce validator check of plugin stamps, {said}"
            )
            assert refusal(broker, "t").startswith(line)
            assert f"topic t takes no records: {line}" in broker.log
            assert "record filter swap" in refusal(broker, "s")
            assert send(broker, "free", b"x").error_code == 0
    with running_broker(tmp_path, settings) as broker:
        librdkafka.alter(broker.address, "topic", "t", {CHECK: None})
        assert send(broker, "t", b"x").error_code == 0
        assert "record filter swap" in refusal(broker, "s")
        assert "produce validator check" in refusal(broker, "two")
        librdkafka.alter(broker.address, "topic", "two", {CHECK: None})
        assert "record filter swap" in refusal(broker, "two")
        librdkafka.delete(broker.address, "s")
    (folder / "stamps.py").write_text(SOURCE)
    with running_broker(tmp_path, on(folder)) as broker:
        librdkafka.alter(broker.address, "topic", "t", {CHECK: "true"})
        assert send(broker, "t", b"x").error_code == 87


@pytest.mark.long
def test_a_default_of_a_plugin_that_is_gone(tmp_path: Path, folder: Path) -> None:
    """It holds for all topics, and stands in the broker's file under a name that is unknown now."""
    with running_broker(tmp_path, on(folder, **{MARK: "m"})) as broker:
        create(broker, "t")
        assert send(broker, "t", b"1").error_code == 0
        assert values(broker, "t", 1) == [b"1m"]
    with running_broker(tmp_path, {MARK: "m"}) as broker:
        assert "record filter mark of plugin stamps, which is not installed" in refusal(broker, "t")
    with running_broker(tmp_path) as broker:
        assert send(broker, "t", b"1").error_code == 0


@pytest.mark.long
def test_a_default_that_was_set_while_running_of_a_plugin_that_is_gone(tmp_path: Path, folder: Path) -> None:
    with running_broker(tmp_path, on(folder)) as broker:
        create(broker, "t")
        librdkafka.alter(broker.address, "broker", "1", {MARK: "m"})
        assert send(broker, "t", b"1").error_code == 0
        assert values(broker, "t", 1) == [b"1m"]
    for later in ("later", "latest"):  # it is still known at the start after
        with running_broker(tmp_path) as broker:
            create(broker, later)
            for topic in ("t", later):
                assert "record filter mark of plugin stamps, which is not installed" in refusal(broker, topic)
    with running_broker(tmp_path) as broker:
        librdkafka.alter(broker.address, "broker", "1", {MARK: None})
        assert send(broker, "t", b"1").error_code == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('("lc.plugin.stamps.nope",)', "check is implied by lc.plugin.stamps.nope, which "),
        (
            '("retention.ms",)',
            "check is implied by retention.ms, which leafcuttr_register_topic_settings does not",
        ),
        ('"lc.plugin.stamps.check"', "as its implied_by; it has to be a tuple of names"),
        ("(3,)", "as its implied_by; it has to be a tuple of names"),
    ],
)
def test_what_implies_it_is_a_topic_setting_of_its_plugin(
    tmp_path: Path, folder: Path, given: str, said: str
) -> None:
    source = SOURCE.replace('implied_by=("lc.plugin.stamps.check",)', f"implied_by={given}")
    assert source != SOURCE
    (folder / "stamps.py").write_text(source)
    with running_broker(tmp_path, on(folder)) as broker:
        assert said in broker.log


def test_it_is_made_once_and_by_a_worker(tmp_path: Path) -> None:
    """As what is named: before the topic is there, or its change."""
    module = ModuleType("stamps")
    exec(SOURCE, vars(module))
    made: list[tuple[str, bool, int]] = []

    class Check:
        def __init__(self, context: TopicContext) -> None:
            known = context.broker.topics.get(context.topic) is not None
            made.append((context.topic, known, threading.get_ident()))

        def validate(self, record: Record) -> None:
            return None

    vars(module)["Check"] = Check
    vars(module)["leafcuttr_register_produce_validators"] = lambda: [
        ProduceValidatorSpec("check", "is counted", Check, implied_by=(CHECK,))
    ]
    with broker_here(tmp_path / "data", {ON: True}, [module]) as broker:
        loop = broker.call(_ident)
        broker.create_topic("t", configs={CHECK: "true"})
        broker.create_topic("u")
        broker.call(lambda inside: inside.topics.alter("u", {CHECK: "true"}))
        broker.produce("t", b"1")
    assert [each[:2] for each in made] == [("t", False), ("u", True)]
    assert loop not in {each[2] for each in made}


async def _ident(_: object) -> int:
    return threading.get_ident()


def test_settings_that_need_none_have_none(tmp_path: Path) -> None:
    """One that is implied may say so of itself; then records pass as if there were none, until a setting changes."""
    module = ModuleType("stamps_needed_or_not")
    exec(SOURCE, vars(module))
    ended: list[str] = []

    def make(context: TopicContext) -> Any:
        mark = context.topic_settings.optional_text(MARK)
        if mark == "none":
            context.settings.on_change(lambda _: ended.append("called"))
            return None
        return vars(module)["Mark"](context)

    vars(module)["leafcuttr_register_record_filters"] = lambda: [
        RecordFilterSpec("mark", "adds the mark", make, implied_by=(MARK,))
    ]
    vars(module)["leafcuttr_register_produce_validators"] = lambda: [
        ProduceValidatorSpec("named", "is named only", lambda context: None)  # type: ignore[arg-type, return-value]
    ]
    with broker_here(tmp_path / "data", {ON: True}, [module]) as broker:
        broker.create_topic("t", configs={MARK: "none"})
        broker.produce("t", b"1")
        broker.call(lambda inside: inside.topics.alter("t", {MARK: "!"}))
        broker.produce("t", b"2")
        broker.create_topic("named", configs={"lc.validators": "named"})
        with pytest.raises(BrokerError, match="what it makes is None and has no method validate"):
            broker.produce("named", b"3")
        assert [record.value for record in broker.consume("t", 2)] == [b"1", b"2!"]
    assert ended == []


def test_describe_shows_it(folder: Path) -> None:
    options = ("plugins", "describe", "stamps", "-o", f"lc.plugins.path={folder}")
    shown = CliRunner().invoke(cli, options).stdout
    assert "IMPLIED BY" in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("check ")]
    assert line.split() == ["check", "refuses", "what", "has", "an", "x", CHECK, "whole", "records"]
    described = json.loads(CliRunner().invoke(cli, [*options, "--json"]).stdout)
    assert [one["implied_by"] for one in described["record_filters"]] == [
        [],
        [MARK],
        ["lc.plugin.stamps.swap.<letter>"],
    ]
    assert described["produce_validators"][0]["implied_by"] == [CHECK]
    (folder / "stamps.py").write_text(SOURCE.replace("implied_by=", "implied_by=() and "))
    assert "IMPLIED BY" not in CliRunner().invoke(cli, options).stdout
