"""Which failures of a plugin end the start of a broker, and which leave it degraded; who keeps a name that two have."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.cli.common.installed import commands_of
from leafcuttr.cli.common.records.formats import formats_of
from leafcuttr.config.load import settings_of
from leafcuttr.config.settings import Given
from leafcuttr.errors import StartError
from leafcuttr.plugins.catalogue import Finder
from leafcuttr.plugins.finding import Choice, find_plugins
from leafcuttr.plugins.loaded import PluginState
from leafcuttr.plugins.origin import OURS
from support.broker_process import BrokerProcess, running_broker, start_broker
from support.librdkafka import create, send
from support.plugin_folders import SOUND, install

HEAD = """
from leafcuttr_sdk import *

PLUGIN = Plugin("acme", 1, "For a test."{more})
"""
BROKEN = "\ndef leafcuttr_register_services(): raise OSError('broken')\n"
TAKEN = """
def leafcuttr_register_settings():
    return listener_settings("lc.plugin.acme", {port})

def leafcuttr_register_services():
    return [ServiceSpec("acme", Acme)]

class Acme:
    def __init__(self, broker):
        self.broker = broker

    async def run(self, *, task_status):
        async with self.broker.listen("lc.plugin.acme"):
            pass
"""
FAILING = """
def leafcuttr_register_services():
    return [ServiceSpec("acme", Acme)]

class Acme:
    def __init__(self, broker):
        raise OSError("not now")
"""
REFUSED = """
def leafcuttr_register_services():
    return [ServiceSpec("acme", Acme)]

class Acme:
    def __init__(self, broker):
        raise PluginError("the certificate has gone")
"""
BUNDLED_AUTHENTICATOR = "http-passwords"
ALL = ", stops_start=tuple(StartFailure)"
NONE = ", stops_start=()"


@pytest.fixture
def busy() -> Iterator[int]:
    """A port that is taken."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def folder(tmp_path: Path, body: str, more: str = "") -> dict[str, str]:
    place = tmp_path / "plugins"
    place.mkdir()
    (place / "acme.py").write_text(HEAD.format(more=more) + body)
    return {"lc.plugins.path": str(place)}


def health(broker: BrokerProcess) -> Any:
    with urllib.request.urlopen(f"http://{broker.about['metrics']}/health", timeout=60) as answer:
        return json.loads(answer.read())


def failures(port: int) -> dict[str, str]:
    return {"left-out": BROKEN, "taken": TAKEN.format(port=port), "refused": REFUSED, "failed": FAILING}


KINDS = ["left-out", "taken", "refused", "failed"]
BY = {
    "setting": (NONE, "acme"),
    "failure in the setting": (NONE, "acme:{failure}"),
    "plugin": (", stops_start=(StartFailure.{name},)", ""),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("failure", KINDS)
@pytest.mark.parametrize("by", BY)
def test_a_failure_that_ends_the_start(tmp_path: Path, busy: int, failure: str, by: str) -> None:
    more, required = BY[by]
    more = more.format(name=failure.replace("-", "_").upper())
    settings = folder(tmp_path, failures(busy)[failure], more)
    settings["lc.plugins.required"] = required.format(failure=failure)
    with pytest.raises(RuntimeError, match=r"status 1: leafcuttr: .*acme"):
        start_broker(tmp_path / "broker", settings)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("failure", KINDS)
@pytest.mark.parametrize("by", ["setting", "plugin"])
def test_a_failure_that_leaves_the_broker_degraded(tmp_path: Path, busy: int, failure: str, by: str) -> None:
    """Every other one would end the start. What the setting says counts more than what the plugin does."""
    others = [kind for kind in KINDS if kind != failure]
    said = "".join(f"StartFailure.{kind.replace('-', '_').upper()}, " for kind in others)
    settings = folder(tmp_path, failures(busy)[failure], f", stops_start=({said})" if by == "plugin" else ALL)
    if by == "setting":
        settings["lc.plugins.required"] = ",".join(f"acme:{kind}" for kind in others)
    with running_broker(tmp_path / "broker", settings) as broker:
        found = health(broker)
    assert found["status"] == "degraded"
    check = found["checks"]["plugins" if failure == "left-out" else "service:acme"]
    assert not check["ok"] and not check["required"]
    if failure == "left-out":
        assert check["detail"] == "left out: acme"


def test_by_default_a_service_that_says_why_it_cannot_start_ends_it(tmp_path: Path, busy: int) -> None:
    with pytest.raises(
        RuntimeError,
        match=r"status 1: leafcuttr: service acme of plugin acme: .*another program listens there",
    ):
        start_broker(tmp_path / "broker", folder(tmp_path, TAKEN.format(port=busy)))


def settled(choice: Choice, values: Mapping[str, str] | None = None) -> Finder:
    finder = Finder()
    about = {
        "lc.plugins.required": ",".join(choice.required),
        "lc.plugins.disabled": ",".join(choice.disabled),
    }
    given = [(name, Given(text, "-o")) for name, text in {**about, **(values or {})}.items() if text]
    settings, _ = settings_of(given, finder)
    finder.plugins.start(settings)
    return finder


SWITCHED = """
def leafcuttr_register_settings():
    yield Setting("lc.plugin.acme.enable", Type.BOOLEAN, False, "Whether it is on.")
"""


@pytest.mark.setting("lc.plugins.required")
@pytest.mark.parametrize(
    ("required", "more", "says"),
    [
        (("acmee",), "", "lc.plugins.required (-o) names acmee, which is not installed; did you mean acme?"),
        (("acme",), ", enabled_by='lc.plugin.acme.enable'", "which is off: lc.plugin.acme.enable=true switches it on"),
        (("acme",), ", modules=('not_there_at_all',)", "which is not available: it needs not_there_at_all"),
    ],
)  # fmt: skip
def test_one_that_is_required_and_not_on(site: Path, required: tuple[str, ...], more: str, says: str) -> None:
    install(site, "acme", HEAD.format(more=more) + SWITCHED)
    with pytest.raises(StartError) as raised:
        settled(Choice(required=required))
    assert says in str(raised.value)


def test_one_that_is_required_and_disabled(site: Path) -> None:
    install(site, "acme")
    with pytest.raises(StartError, match=r"names acme, which is disabled: lc.plugins.disabled names it"):
        settled(Choice(required=("acme",), disabled=frozenset({"acme"})))


@pytest.mark.parametrize("entry", ["acme:took", "acme:", ":taken:acme"])
def test_a_failure_that_is_none(site: Path, entry: str) -> None:
    install(site, "acme")
    with pytest.raises(StartError) as raised:
        settled(Choice(required=(entry,)))
    assert str(raised.value) == (
        f"lc.plugins.required (-o) has {entry}: allowed is the name of a plugin, or name:failure with one of "
        "left-out, taken, refused, failed"
    )


def test_one_that_may_be_left_out_may_be_off(site: Path) -> None:
    install(site, "acme", HEAD.format(more=", enabled_by='lc.plugin.acme.enable'") + SWITCHED)
    assert "acme" not in [one.name for one in settled(Choice(required=("acme:taken",))).plugins.enabled]
    with pytest.raises(StartError, match="names acmee, which is not installed"):
        settled(Choice(required=("acmee:taken",)))


def test_one_that_is_required_and_there(site: Path) -> None:
    install(site, "acme")
    assert "acme" in [one.name for one in settled(Choice(required=("acme",))).plugins.enabled]


@pytest.mark.parametrize("value", ["'failed'", "(1,)", "[StartFailure.FAILED]", "StartFailure.FAILED"])
def test_what_stops_a_start_is_checked(site: Path, value: str) -> None:
    install(site, "acme", HEAD.format(more=f", stops_start={value}"))
    one = next(one for one in find_plugins(Choice()).all if one.name == "acme")
    assert "it has to be a tuple of StartFailure" in one.why


# Filters that refuse everything

REFUSES = """
class Mask:
    def filter(self, record):
        if record.value != b"fine":
            raise ValueError("no")
        return record

def leafcuttr_register_record_filters():
    yield RecordFilterSpec("mask", "Masks.", lambda context: Mask())
"""


def test_filters_that_refuse_everything_leave_the_broker_degraded(tmp_path: Path) -> None:
    with running_broker(tmp_path / "broker", folder(tmp_path, REFUSES)) as broker:
        create(broker.address, "t", lc_filters="mask")
        for count in (1, 2, 3):
            assert health(broker)["status"] == "ok", count
            assert send(broker.address, "t", [b"x"], timestamp=1, retries=0) != [0]
        found = health(broker)
        assert found["status"] == "degraded"
        assert found["checks"]["filters"]["detail"] == "their filters fail on every batch: t"
        assert send(broker.address, "t", [b"fine"], timestamp=1) == [0]
        assert health(broker)["status"] == "ok"


# Two that clash in a name

CLASHES = {
    "record filter": "def leafcuttr_register_record_filters():\n    yield RecordFilterSpec('same', 'It.', print)\n",
    "produce validator": (
        "def leafcuttr_register_produce_validators():\n    yield ProduceValidatorSpec('same', 'It.', print)\n"
    ),
    "service": "def leafcuttr_register_services():\n    yield ServiceSpec('same', print)\n",
}
ON = """
from leafcuttr_sdk import *

PLUGIN = Plugin({name!r}, 1, "For a test."{more})
"""


@pytest.mark.parametrize("kind", CLASHES)
@pytest.mark.parametrize("keeper", ["a-first", "z-bundled"])
def test_the_first_by_name_keeps_a_name_and_a_bundled_one_before_all(
    site: Path, kind: str, keeper: str
) -> None:
    for name in ("m-second", keeper):
        bundled = name == "z-bundled"
        more = ", enabled_by='lc.z.enable'" if bundled else ""
        own = "def leafcuttr_register_settings():\n    yield Setting('lc.z.enable', Type.BOOLEAN, False, 'It.')\n"
        source = ON.format(name=name, more=more) + (own if bundled else "") + CLASHES[kind]
        install(site, name, source, distribution=OURS if bundled else None)
    plugins = settled(Choice(), {"lc.z.enable": "true"} if keeper == "z-bundled" else {}).plugins
    first, second = plugins.get(keeper), plugins.get("m-second")
    assert first is not None and second is not None
    assert first.state is PluginState.ENABLED, first.why
    assert second.state is PluginState.FAILED
    assert second.why == f"plugin {keeper} has a {kind} same too"


def test_two_plugins_of_one_name(site: Path) -> None:
    for distribution in ("zebra", "aardvark"):
        install(site, "acme", SOUND.format(name="acme"), distribution=distribution)
    install(site, "http", SOUND.format(name="http"), distribution="aaa")
    found = find_plugins(Choice()).all
    kept = {one.name: str(one.origin.distribution) for one in found if one.state is not PluginState.FAILED}
    assert (kept["acme"], kept["http"]) == ("aardvark", OURS)
    whys = {str(one.origin.distribution): one.why for one in found if one.state is PluginState.FAILED}
    assert whys["zebra"] == "aardvark 1.2 has a plugin of that name too, and that one is taken"
    assert whys["aaa"].endswith("has a plugin of that name too, and that one is taken")


METRIC = """
def leafcuttr_register_metrics(broker):
    yield MetricReading(gauge("leafcuttr_acme_pump_level", "It."), lambda: ())
"""


def test_two_plugins_with_one_metric(tmp_path: Path) -> None:
    """Its name begins with that of both."""
    settings = folder(tmp_path, METRIC)
    (tmp_path / "plugins" / "acme_pump.py").write_text(ON.format(name="acme-pump", more="") + METRIC)
    with running_broker(tmp_path / "broker", settings) as broker:
        found = health(broker)
    assert found["checks"]["plugins"]["detail"] == "left out: acme-pump"
    (line,) = [line for line in broker.log.splitlines() if "is ready on" not in line]
    assert "plugin acme-pump (" in line and "there is a metric leafcuttr_acme_pump_level already" in line


AUTHENTICATOR = """
def leafcuttr_register_authenticators(broker):
    yield AuthenticatorSpec({name!r}, "It.", print, ("basic",))
"""
OF_THE_PLUGIN = """
async def answer(_):
    return Response(PLUGIN.name.encode())

def leafcuttr_register_health_checks(broker):
    yield HealthCheck("same", "It.", lambda: Finding(True))

def leafcuttr_register_admin_routes(broker):
    yield AdminRoute("/same", answer, "It.")
"""


def test_two_plugins_with_one_authenticator_and_names_that_do_not_clash(tmp_path: Path) -> None:
    """Health checks and routes stand below the name of their plugin."""
    bodies = {
        "aaa": OF_THE_PLUGIN + AUTHENTICATOR.format(name="same"),
        "bbb": OF_THE_PLUGIN + AUTHENTICATOR.format(name="other"),
        "ccc": AUTHENTICATOR.format(name="same"),
        "ddd": AUTHENTICATOR.format(name=BUNDLED_AUTHENTICATOR),
        "eee": "def leafcuttr_register_settings(): yield Setting('lc.http.proxy.port', Type.INT, 1, 'It.')\n",
    }
    settings = folder(tmp_path, "")
    for name, body in bodies.items():
        (tmp_path / "plugins" / f"{name}.py").write_text(ON.format(name=name, more="") + body)
    settings |= {"lc.http.proxy.enable": "true", "lc.http.proxy.port": "0"}
    with running_broker(tmp_path / "broker", settings) as broker:
        found = health(broker)
        for name in ("aaa", "bbb"):
            assert found["checks"][f"{name}:same"]["ok"]
            address = f"http://{broker.about['metrics']}/plugins/{name}/same"
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert answer.read() == name.encode()
    assert found["checks"]["plugins"]["detail"] == "left out: ccc, ddd, eee"
    for name, why in {
        "ccc": "there is an authenticator same already, of plugin aaa",
        "ddd": f"there is an authenticator {BUNDLED_AUTHENTICATOR} already, of plugin http",
        "eee": "its setting lc.http.proxy.port: its name has to begin with lc.plugin.eee.",
    }.items():
        (line,) = [line for line in broker.log.splitlines() if f"plugin {name} (" in line]
        assert line.endswith(why)


COMMANDS = """
def leafcuttr_register_cli_commands():
    yield CliCommand("same", "It.", print)
    yield CliCommand("serve", "It.", print)

class Format:
    summary, options = "It.", {}

    def __init__(self, name):
        self.name = name

    def open(self, options):
        return self

def leafcuttr_register_record_formats():
    yield Format("same")
    yield Format("json")
"""


def test_two_plugins_with_one_command_and_one_format(site: Path) -> None:
    """Only that command, or format, is left out."""
    more = ", enabled_by='lc.z.enable'"
    own = "def leafcuttr_register_settings():\n    yield Setting('lc.z.enable', Type.BOOLEAN, False, 'It.')\n"
    install(site, "z-bundled", ON.format(name="z-bundled", more=more) + own + COMMANDS, distribution=OURS)
    for name in ("b-second", "a-first"):
        install(site, name, ON.format(name=name, more="") + COMMANDS)
    plugins = find_plugins(Choice())
    commands, formats = commands_of(plugins, {"serve"}), formats_of(plugins)
    assert {name: one.name for name, (one, _) in commands.items() if name in ("same", "serve")} == {
        "same": "z-bundled"
    }
    assert {name: one.name for name, (one, _) in formats.items()} == {"same": "z-bundled"}
    for name in ("a-first", "b-second"):
        one = plugins.get(name)
        assert one is not None and one.state is not PluginState.FAILED
        assert one.remarks == [
            "its command same is left out: plugin z-bundled has one of that name",
            "its command serve is left out: LeafCuttr has one of that name",
            "its format same is left out: plugin z-bundled has one of that name",
            "its format json is left out: LeafCuttr has one of that name",
        ]
