"""`leafcuttr serve` and plugins that are sound, off, disabled, unavailable, broken: what it says, whether it starts."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from urllib.error import HTTPError

import pytest

from support.broker_process import clean_environ, running_broker
from support.commands import Ran
from support.forked_start import run_leafcuttr
from support.librdkafka import read, send
from support.plugin_folders import SOUND, install

SWITCHED = """
from leafcuttr_sdk import Plugin, Setting, Type

PLUGIN = Plugin(
    name={name!r}, api_version=1, summary="Can be switched on.", enabled_by={switch!r}, extra="fast",
    modules=("not_there_at_all", "json"),
)


def leafcuttr_register_settings():
    yield Setting({switch!r}, Type.BOOLEAN, False, "Whether it is on.")
"""


def environ(site: Path) -> dict[str, str]:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def refused(site: Path, settings: Mapping[str, str]) -> Ran:
    """A start that ends by itself."""
    words = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    done = run_leafcuttr(
        ("serve", "-o", "listeners=PLAINTEXT://127.0.0.1:0", *words),
        cwd=site,
        environ=clean_environ(environ(site)),
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def log_of_a_start(site: Path, tmp_path: Path, settings: Mapping[str, str] | None = None) -> list[str]:
    """What a broker that starts and stops says, but for the line that it is ready."""
    with running_broker(tmp_path / "broker", settings, environ=environ(site)) as broker:
        pass
    return [line for line in broker.log.splitlines() if "is ready on" not in line]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


def test_broken_ones_are_left_out_each_with_a_line(site: Path, tmp_path: Path) -> None:
    install(site, "acme", "1 / 0")
    install(site, "misspelt", SOUND.format(name="misspelt") + "def leafcuttr_register_service(): pass\n")
    install(site, "newer", SOUND.format(name="newer").replace("=1", "=7"))
    install(site, "late", SOUND.format(name="late") + "def leafcuttr_register_services(): return [1]\n")
    install(site, "sound")
    lines = log_of_a_start(site, tmp_path)
    found = {line.partition("plugin ")[2].partition(" ")[0]: line for line in lines}
    assert len(lines) == len(found) == 4
    assert "division by zero" in found["acme"]
    assert "did you mean leafcuttr_register_services?" in found["misspelt"]
    assert "install a newer leafcuttr, or an older leafcuttr-newer" in found["newer"]
    assert "leafcuttr_register_services: it returned an int among others" in found["late"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("hook", "says"),
    [
        ("services(): yield ServiceSpec('', print)", "a ServiceSpec has '' as its name; it has to be a text"),
        ("services(): yield ServiceSpec('a', 5)", "a ServiceSpec has 5 as its make; it has to be a function"),
        ("health_checks(broker): yield HealthCheck('a', 'b', 1)", "has 1 as its look; it has to be a function"),
        ("admin_routes(broker): yield AdminRoute(7, print, 'a')", "an AdminRoute has 7 as its path; it has to be a"),
        ("metrics(broker): return MetricReading", "returned a type; it has to return an iterable of MetricReading"),
        ("record_filters(): return [RecordFilterSpec('a', 'b', print)] * 2", "it has two of the record filter a"),
        ("record_filters(): yield RecordFilterSpec('mine', '', print)", "has '' as its summary; it has to be a text"),
    ],
)  # fmt: skip
def test_what_a_hook_returns_is_checked(site: Path, tmp_path: Path, hook: str, says: str) -> None:
    source = f"from leafcuttr_sdk import *\n{SOUND.format(name='acme')}\ndef leafcuttr_register_{hook}\n"
    install(site, "acme", source)
    (line,) = log_of_a_start(site, tmp_path)
    assert says in line


def test_two_plugins_with_a_filter_of_one_name(site: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        hook = "def leafcuttr_register_record_filters(): yield RecordFilterSpec('mask', 'masks', print)\n"
        install(site, name, f"from leafcuttr_sdk import *\n{SOUND.format(name=name)}\n{hook}")
    (line,) = log_of_a_start(site, tmp_path)
    assert line.endswith("plugin second (leafcuttr-second 1.2): plugin first has a record filter mask too")


def test_metrics_tell_what_became_of_each(site: Path, tmp_path: Path) -> None:
    install(site, "acme", "1 / 0", version="4.5")
    install(site, "sound")
    with running_broker(
        tmp_path / "broker", {"lc.plugins.disabled": "http"}, environ=environ(site)
    ) as broker:
        address = json.loads((broker.folder / "ready.json").read_text())["metrics"]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
    assert 'leafcuttr_plugin_info{plugin="acme",state="failed",version="4.5"} 1.0' in lines
    assert 'leafcuttr_plugin_info{plugin="sound",state="enabled",version="1.2"} 1.0' in lines
    (http,) = [line for line in lines if line.startswith('leafcuttr_plugin_info{plugin="http"')]
    assert 'state="disabled"' in http


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "source",
    [
        "raise OSError('no')",
        SOUND.format(name="acme") + "def leafcuttr_register_services(): return [1]\n",
        SOUND.format(name="acme").replace("=1", "=7"),
    ],
)
def test_strict_stops_the_start(site: Path, source: str) -> None:
    install(site, "acme", source)
    ran = refused(site, {"lc.plugins.strict": "true"})
    assert (ran.status, ran.out) == (1, "")
    (line,) = ran.err.splitlines()
    assert line.startswith("leafcuttr: plugin acme (leafcuttr-acme 1.2): ")
    assert line.endswith(" (lc.plugins.strict=true)")


def test_disabled_is_as_if_it_were_not_there(site: Path, tmp_path: Path) -> None:
    install(site, "acme", "raise SystemExit('imported')")
    settings = {"lc.plugins.disabled": "acme", "lc.plugins.strict": "true"}
    assert log_of_a_start(site, tmp_path, settings) == []


def test_a_mistyped_name_that_is_to_be_left_out(site: Path, tmp_path: Path) -> None:
    install(site, "acme")
    (line,) = log_of_a_start(site, tmp_path, {"lc.plugins.disabled": "amce,something-else"})
    assert line.endswith("lc.plugins.disabled (-o) names amce, which is not installed; did you mean acme?")


def test_a_folder_that_is_not_there(site: Path) -> None:
    site.mkdir()
    ran = refused(site, {"lc.plugins.path": "nowhere"})
    assert ran == Ran(1, "", "leafcuttr: lc.plugins.path=nowhere (-o): No such file or directory\n")


@pytest.mark.parametrize("distribution", ["leafcuttr-acme", "leafcuttr"])
def test_without_its_packages_one_is_unavailable_until_it_is_switched_on(
    site: Path, tmp_path: Path, distribution: str
) -> None:
    switch = "lc.plugin.acme.enable"
    install(site, "acme", SWITCHED.format(name="acme", switch=switch), distribution=distribution, version="9")
    strict = {"lc.plugins.strict": "true"}
    assert log_of_a_start(site, tmp_path, strict) == []
    ran = refused(site, {switch: "true"})
    assert ran == Ran(
        1,
        "",
        f"leafcuttr: {switch}=true (-o): plugin acme: it needs not_there_at_all, which is not installed; "
        f"mend it with: pip install '{distribution}[fast]'\n",
    )


def test_one_that_is_always_on_without_its_packages_is_left_out(site: Path, tmp_path: Path) -> None:
    source = SOUND.format(name="acme").replace("summary", "modules=('not_there_at_all',), summary")
    install(site, "acme", source)
    (line,) = log_of_a_start(site, tmp_path)
    assert line.endswith(
        "plugin acme (leafcuttr-acme 1.2): it needs not_there_at_all, which is not installed; "
        "mend it with: pip install not_there_at_all"
    )
    assert refused(site, {"lc.plugins.strict": "true"}).status == 1


def test_a_value_that_its_setting_refuses_names_the_setting(site: Path) -> None:
    install(site, "acme", SWITCHED.format(name="acme", switch="lc.plugin.acme.enable"))
    ran = refused(site, {"lc.plugin.acme.enable": "perhaps"})
    assert ran == Ran(2, "", "leafcuttr: lc.plugin.acme.enable=perhaps (-o): allowed is true or false\n")


TEXT_SWITCH = """
from leafcuttr_sdk import Plugin, Setting, Type

PLUGIN = Plugin(
    name="fed", api_version=1, summary="Is on when it is told what to do.", enabled_by="lc.plugin.fed.file",
    modules=("not_there_at_all",),
)


def leafcuttr_register_settings():
    yield Setting("lc.plugin.fed.file", Type.STRING, None, "What to do.")
"""


def test_a_text_switches_on_once_it_is_set(site: Path, tmp_path: Path) -> None:
    install(site, "fed", TEXT_SWITCH)
    assert log_of_a_start(site, tmp_path) == []
    assert log_of_a_start(site, tmp_path, {"lc.plugin.fed.file": ""}) == []
    failed = refused(site, {"lc.plugin.fed.file": "jobs.txt"})
    assert failed.status == 1
    assert "lc.plugin.fed.file=jobs.txt (-o): plugin fed: it needs not_there_at_all" in failed.err


MOVES = """
import os
from leafcuttr_sdk import *

PLUGIN = Plugin("acme", 1, "Changes what is of the whole process.")
FOLDER = os.environ["ELSEWHERE"]


def move():
    os.chdir(FOLDER)
    os.umask(0o777)


async def late(_):
    os.chdir(FOLDER)
    return Response(b"{}")


def leafcuttr_register_settings():
    move()
    return []


def leafcuttr_register_services():
    move()
    return []


def leafcuttr_register_admin_routes(broker):
    os.chdir(FOLDER)
    return [AdminRoute("/late", late, "is late")]


move()
"""


def test_a_plugin_that_changes_the_working_directory_and_the_umask(site: Path, tmp_path: Path) -> None:
    """A relative data directory stays where it is, and so do the files of topics that are created later."""
    install(site, "acme", MOVES)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    settings = {"log.dirs": "relative"}
    given = {**environ(site), "ELSEWHERE": str(elsewhere)}
    for number in (1, 2):
        with running_broker(tmp_path / "broker", settings, environ=given) as broker:
            assert send(broker.address, f"before-{number}", [b"x"], timestamp=1) == [0]
            urllib.request.urlopen(f"http://{broker.about['metrics']}/plugins/acme/late", timeout=60).close()
            assert send(broker.address, f"after-{number}", [b"x"], timestamp=1) == [0]
            for name in {"before-1", "after-1", f"after-{number}"}:
                assert [message.value() for message in read(broker.address, name, 1)] == [b"x"]
    assert not list(elsewhere.iterdir())
    data = tmp_path / "broker" / "relative"
    assert {entry.name for entry in data.iterdir()} >= {"before-1-0", "after-2-0"}
    assert data.stat().st_mode & 0o700 == 0o700
    said = [line for line in broker.log.splitlines() if "changed back" in line]
    assert len(said) == 4, "two lines for each start"
    assert all(
        "plugin acme has changed the working directory and umask of the process: " in line for line in said
    )
    assert not (tmp_path / "broker" / "ready.json").exists()


CLOSES = """
import sys
from leafcuttr_sdk import *

PLUGIN = Plugin("acme", 1, "Closes what the whole process writes to.")


def close(how):
    for name in ("stdout", "stderr"):
        if how == "close":
            getattr(sys, name).close()
        elif how == "detach":
            getattr(sys, name).detach()
        else:
            setattr(sys, name, None)


async def late(request):
    close(request.query["how"][0])
    raise ValueError(request.query["how"][0])


def leafcuttr_register_admin_routes(broker):
    close("close")
    return [AdminRoute("/late", late, "is late")]


close("close")
1 / 0 if {fails} else None
"""


def test_a_plugin_that_closes_the_standard_streams(site: Path, tmp_path: Path) -> None:
    """They stay where they lead: what is said afterwards is there, and a stop is clean."""
    install(site, "acme", CLOSES.replace("{fails}", "False"))
    with running_broker(tmp_path / "broker", environ=environ(site)) as broker:
        for how in ("detach", "none", "close"):
            with pytest.raises(HTTPError, match="500"):
                urllib.request.urlopen(
                    f"http://{broker.about['metrics']}/plugins/acme/late?how={how}", timeout=60
                )
            assert send(broker.address, how, [b"x"], timestamp=1) == [0]
    assert " is ready on PLAINTEXT://" in broker.log
    assert "plugin acme: route /plugins/acme/late failed: ValueError: detach (" in broker.log
    assert "Traceback" not in broker.log


def test_a_plugin_that_closes_them_and_fails(site: Path, tmp_path: Path) -> None:
    install(site, "acme", CLOSES.replace("{fails}", "True"))
    (line,) = log_of_a_start(site, tmp_path)
    assert "plugin acme (" in line and "ZeroDivisionError" in line
    done = refused(site, {"lc.plugins.strict": "true"})
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("leafcuttr: plugin acme (") and "ZeroDivisionError" in done.err
