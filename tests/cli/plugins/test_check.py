"""`leafcuttr plugins check`: a plugin by its file and by its project; what is wrong with it is told, and the status."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from leafcuttr.cli.root import cli
from support.forked_start import run_leafcuttr
from support.plugin_folders import install

SAMPLE = Path(__file__).parents[2] / "sample_plugin"

PLAIN = """
from leafcuttr_sdk import *
PLUGIN = Plugin("parcels", 1, "for tests", enabled_by="lc.plugin.parcels.on")

def leafcuttr_register_settings():
    return [
        Setting("lc.plugin.parcels.on", Type.BOOLEAN, False, "Whether it is on."),
        Setting("lc.plugin.parcels.strength", Type.INT, 1, "How strong.", minimum=1),
    ]

def leafcuttr_register_topic_settings():
    return [Setting("lc.plugin.parcels.max", Type.INT, 10, "How long.")]

class Short:
    def __init__(self, context):
        self.max = context.topic_settings.int("lc.plugin.parcels.max")
        assert self.max < 1000, "too long"
    def filter(self, record):
        return record if len(record.value or b"") < self.max else DROP

def leafcuttr_register_record_filters():
    return [RecordFilterSpec("short", "drops what is long", Short)]

class Idle:
    def __init__(self, broker):
        self.settings = broker.settings
        self.strength = broker.settings.int("lc.plugin.parcels.strength")
    async def run(self, *, task_status):
        import trio
        task_status.started()
        await trio.sleep_forever()

def leafcuttr_register_services():
    return [ServiceSpec("parcels", Idle)]

def leafcuttr_register_health_checks(broker):
    return [HealthCheck("sorted", "Parcels are sorted.", lambda: Finding(False, "not yet"))]

WEIGHT = gauge("leafcuttr_parcels_weight", "Of all parcels.", "kind")

def leafcuttr_register_metrics(broker):
    return [MetricReading(WEIGHT, lambda: [(("large",), 7), (("small",), 0.5)])]

def leafcuttr_register_admin_routes(broker):
    async def count(request):
        return Response(b"7")
    async def parcel(request):
        return Response(request.parameters["parcel"].encode(), "text/plain")
    return [
        AdminRoute("/count", count, "how many there are"),
        AdminRoute("/parcels/{parcel}", parcel, "one of them"),
    ]
"""


def check(*words: str) -> Result:
    return CliRunner().invoke(cli, ["plugins", "check", *words])


def written(folder: Path, old: str = "", new: str = "") -> str:
    """The plugin above in a file, with something else in one place."""
    assert old in PLAIN
    path = folder / "parcels.py"
    path.write_text(PLAIN.replace(old, new) if old else PLAIN)
    return str(path)


def problems(done: Result) -> dict[str, list[str]]:
    """By kind and name of the check."""
    return {
        f"{report['kind']}: {one['name']}": one["problems"]
        for report in json.loads(done.stdout)
        for one in report["checks"]
        if one["problems"]
    }


@pytest.mark.long
def test_all_is_well(tmp_path: Path) -> None:
    done = check(written(tmp_path))
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:-1] == [
        "plugin parcels: ok",
        "record filter short: ok",
        "service parcels: ok",
        "health check sorted: ok",
        "metric leafcuttr_parcels_weight: ok",
        "admin route /count: ok",
        "admin route /parcels/{parcel}: ok",
        "broker parcels: ok",
    ]
    assert done.stdout.endswith(" checks, 0 problems\n")


@pytest.mark.long
def test_what_implies_a_filter_is_shown(tmp_path: Path) -> None:
    old = '"drops what is long", Short'
    done = check(written(tmp_path, old, old + ', ("lc.plugin.parcels.max",)'), "--json")
    assert done.exit_code == 0
    (report,) = [one for one in json.loads(done.stdout) if one["kind"] == "record filter"]
    assert report["checks"][-1] == {
        "name": "implied by",
        "promise": "what implies it (lc.plugin.parcels.max) is declared",
        "ok": True,
        "problems": [],
    }
    done = check(written(tmp_path, old, old + ', ("lc.plugin.parcels.strength",)'))
    assert done.exit_code == 1
    assert (
        "short is implied by lc.plugin.parcels.strength, which leafcuttr_register_topic_settings does not declare"
        in done.stdout
    )


@pytest.mark.long
def test_json(tmp_path: Path) -> None:
    done = check(written(tmp_path), "--json")
    reports: list[dict[str, Any]] = json.loads(done.stdout)
    assert done.exit_code == 0
    assert [(one["kind"], one["name"], one["ok"]) for one in reports] == [
        ("plugin", "parcels", True),
        ("record filter", "short", True),
        ("service", "parcels", True),
        ("health check", "sorted", True),
        ("metric", "leafcuttr_parcels_weight", True),
        ("admin route", "/count", True),
        ("admin route", "/parcels/{parcel}", True),
        ("broker", "parcels", True),
    ]
    assert all(one["promise"] and one["ok"] for report in reports for one in report["checks"])


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "given",
    [(), ("ws.port=0",), ("page.port=0", "lamp=true")],
    ids=["as it is", "websockets", "http and a program"],
)
def test_a_project_that_is_not_installed(tmp_path: Path, given: tuple[str, ...]) -> None:
    """In a process of its own, because its packages are imported; also with what is off by default."""
    options = [word for each in given for word in ("-o", f"lc.plugin.greenhouse.{each}")]
    done = run_leafcuttr(("plugins", "check", str(SAMPLE), *options), seconds=240, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "record format reading: ok" in done.stdout
    assert "command greenhouse: ok" in done.stdout
    assert "authorizer gardeners: ok" in done.stdout


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("old", "new", "where", "says"),
    [
        ("PLUGIN = Plugin", "PLUGON = Plugin", "plugin: found", "has no PLUGIN"),
        ('"parcels", 1,', '"parcels", 99,', "plugin: found", "written for version 99"),
        (
            "from leafcuttr_sdk import *",
            "import nothing_of_this_name",
            "plugin: found",
            "nothing_of_this_name",
        ),
        (
            "register_services",
            "register_servces",
            "plugin: found",
            "did you mean leafcuttr_register_services?",
        ),
        ('"lc.plugin.parcels.max", Type', '"max", Type', "plugin: found", "max"),
        (
            "from leafcuttr_sdk import *",
            "from leafcuttr_sdk import *\nimport click",
            "plugin: light",
            "imports click",
        ),
        (
            'enabled_by="lc.plugin.parcels.on"',
            'enabled_by="lc.plugin.parcels.strength"',
            "plugin: switch",
            "boolean",
        ),
        ("else DROP", "else None", "record filter: verdicts", "returned None"),
        ("        await trio.sleep_forever()\n", "", "service: runs", "run returned"),
        ("return [RecordFilterSpec", "return [1, RecordFilterSpec", "plugin: found", "RecordFilterSpec"),
        ("else DROP", "else 1 / 0", "record filter: exceptions", "filter raised ZeroDivisionError"),
        ('lambda: Finding(False, "not yet")', "lambda: 1 / 0", "health check: answers", "ZeroDivisionError"),
        (
            'lambda: Finding(False, "not yet")',
            "lambda: exit(3)",
            "health check: answers",
            "look raised SystemExit: 3: return Finding(False, why)",
        ),
        (
            '[(("large",), 7), (("small",), 0.5)]',
            '[(("large",), 1 / 0)]',
            "metric: reads",
            "read raised ZeroDivisionError",
        ),
        (
            '(("small",), 0.5)',
            '(("large",), 0.5)',
            "metric: samples",
            "the labels ('large',) are there twice",
        ),
        (
            'request.parameters["parcel"].encode()',
            'b"%d" % int(request.parameters["parcel"])',
            "admin route: any parameter",
            "the handler raised ValueError: invalid literal for int() with base 10: 'a b' for 'a b'",
        ),
        ('return Response(b"7")', "return 1 / 0", "broker: admin port", "/plugins/parcels/count answers 500"),
        (
            "        await trio.sleep_forever()\n",
            "        raise SystemExit(3)\n",
            "service: runs",
            "run raised SystemExit: 3",
        ),
        (
            "        task_status.started()\n",
            "        self.settings.on_change(print)\n        task_status.started()\n",
            "service: leaves nothing",
            "1 more function that was given to on_change was left",
        ),
        (
            "        task_status.started()\n",
            "        import subprocess\n        subprocess.Popen(['sleep', '20'])\n        task_status.started()\n",
            "service: leaves nothing",
            "1 more process was left",
        ),
        (
            "def leafcuttr_register_metrics(broker):\n",
            "def leafcuttr_register_metrics(broker):\n    import subprocess\n    subprocess.Popen(['sleep', '20'])\n",
            "broker: leaves nothing",
            "processes that it started go on",
        ),
    ],
)
def test_what_is_wrong_is_told(old: str, new: str, where: str, says: str, tmp_path: Path) -> None:
    done = check(written(tmp_path, old, new), "--json")
    assert done.exit_code == 1, done.output
    found = problems(done)
    assert any(says in problem for problem in found.get(where, ())), done.stdout


@pytest.mark.long
def test_a_command_is_called_with_a_broker_in_which_the_plugin_runs(tmp_path: Path) -> None:
    """At both of its ports; and what it prints has to be JSON."""
    command = """
def leafcuttr_register_cli_commands():
    yield CliCommand("parcels", "count parcels", load)

def load():
    import click, urllib.request
    from confluent_kafka.admin import AdminClient

    @click.command(help="Count parcels.")
    @bootstrap_server_options
    @admin_server_option
    @json_option
    def parcels():
        context = command_context()
        (broker,) = context.client(AdminClient).list_topics(timeout=5).brokers
        with urllib.request.urlopen(f"http://{context.admin_address}/plugins/parcels/count") as answer:
            context.print_line(f"{answer.read().decode()} parcels")
    return parcels
"""
    done = check(written(tmp_path, "class Idle:", f"{command}\nclass Idle:"), "--json")
    assert problems(done) == {"command: json": ["`parcels --json` printed '7 parcels\\n', which is no JSON"]}


@pytest.mark.long
def test_what_a_broker_has_imported_anyway_costs_nothing(tmp_path: Path) -> None:
    """So `import trio` at the top is fine; one line for anything else, whatever it brings."""
    done = check(written(tmp_path, "from leafcuttr_sdk import *", "import trio\nfrom leafcuttr_sdk import *"))
    assert done.exit_code == 0, done.output
    heavy = "import json, trio.testing\nfrom leafcuttr_sdk import *\nimport httpx\nfrom click import echo"
    found = problems(check(written(tmp_path, "from leafcuttr_sdk import *", heavy), "--json"))
    assert found.keys() == {"plugin: light"}
    click, httpx, testing = found["plugin: light"]
    assert click.startswith(
        "to import it imports click, at every start of a broker, also while the plugin is off"
    )
    assert httpx.startswith("to import it imports httpx (which imports ")
    assert testing.startswith("to import it imports trio.testing (which imports _pytest, ")


@pytest.mark.long
def test_what_is_imported_at_the_first_start_holds_up_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker does not serve yet when it starts its services: they may import what is heavy then."""
    (tmp_path / "heavy_of_parcels.py").write_text("import time\ntime.sleep(0.5)\n")
    source = f"        import sys; sys.path.insert(0, {str(tmp_path)!r}); import heavy_of_parcels\n"
    done = check(written(tmp_path, "        import trio\n", "        import trio\n" + source))
    assert done.exit_code == 0, done.output
    assert "heavy_of_parcels" in sys.modules
    assert "event loop" not in caplog.text
    done = check(written(tmp_path, "        import trio\n", "        import time, trio; time.sleep(0.5)\n"))
    assert done.exit_code == 1
    assert "one step of it took over" in done.output
    assert "parcels has held the event loop" in caplog.text


@pytest.mark.long
def test_a_plugin_that_exits_in_every_place_does_not_end_the_check(tmp_path: Path) -> None:
    """And what is fine beside it is checked all the same."""
    source = PLAIN.replace("await trio.sleep_forever()", "raise SystemExit(3)")
    source = source.replace("return record if", "exit(4) if True else record if")
    source = source.replace('return Response(b"7")', "raise SystemExit(5)")
    path = tmp_path / "parcels.py"
    path.write_text(source)
    done = check(str(path), "--json")
    assert done.exit_code == 1
    found = problems(done)
    assert {"record filter: exceptions", "service: runs"} <= found.keys()
    assert any(name.startswith("broker: ") for name in found)


@pytest.mark.long
def test_other_installed_plugins_do_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless a setting says so: each of them would take its port."""
    said = tmp_path / "said"
    source = f"""
from leafcuttr_sdk import Plugin, PluginError, ServiceSpec
PLUGIN = Plugin("other", 1, "for tests")
def leafcuttr_register_services():
    open({str(said)!r}, "a").write("it runs")
    return ()
"""
    install(tmp_path / "site", "other", source)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    done = check(written(tmp_path))
    assert (done.exit_code, said.exists()) == (0, False), done.output
    done = check(written(tmp_path), "-o", "lc.plugins.disabled=")
    assert (done.exit_code, said.exists()) == (0, True), done.output


@pytest.mark.long
def test_listeners_take_free_ports(tmp_path: Path) -> None:
    """Another program has the port that is the default."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        source = PLAIN.replace(
            "    return [\n        Setting(",
            f"    return [\n        *listener_settings('lc.plugin.parcels', {port}),\n        Setting(",
        )
        source = source.replace(
            "        task_status.started()\n        await trio.sleep_forever()",
            "        async with self.broker.listen('lc.plugin.parcels'):\n"
            "            task_status.started()\n            await trio.sleep_forever()",
        ).replace("        self.strength", "        self.broker = broker\n        self.strength")
        path = tmp_path / "parcels.py"
        path.write_text(source)
        done = check(str(path))
        assert done.exit_code == 0, done.output
        done = check(str(path), "-o", f"lc.plugin.parcels.port={port}")
        assert done.exit_code == 1
        assert "another program listens there" in done.stdout


@pytest.mark.long
def test_the_settings_count(tmp_path: Path) -> None:
    """A filter is made with those of the topic, a service with those of the broker."""
    done = check(written(tmp_path), "--topic-config", "lc.plugin.parcels.max=5000")
    assert done.exit_code == 1
    assert "  made: making it raised AssertionError: too long" in done.stdout
    done = check(written(tmp_path), "-o", "lc.plugin.parcels.strength=7")
    assert done.exit_code == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("check_of_it", ["", ", check=lambda value: None if value == 'a:1' else 'no a:1'"])
def test_a_text_that_switches_it_on_has_to_be_given(tmp_path: Path, check_of_it: str) -> None:
    """A boolean is true for the check; what a text may be nobody knows but its author."""
    text = f'Setting("lc.plugin.parcels.on", Type.STRING, None, "The peer."{check_of_it})'
    file = written(
        tmp_path, 'Setting("lc.plugin.parcels.on", Type.BOOLEAN, False, "Whether it is on.")', text
    )
    done = check(file)
    assert done.exit_code == 2
    assert "parcels is on where lc.plugin.parcels.on is set: say to what, as -o" in done.stderr
    done = check(file, "-o", "lc.plugin.parcels.on=a:1")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nobody",), "nobody is neither an installed plugin nor a file or a folder"),
        (("htpt",), "did you mean http?"),
        (("notes.txt",), "notes.txt is no Python file"),
        (("empty",), "a folder has to be that of a project"),
        (("bare",), "has no plugins: they are named below [project.entry-points"),
        (("parcels.py", "-o", "lc.plugin.parcels.strength=0"), "lc.plugin.parcels.strength"),
        (("parcels.py", "--topic-config", "lc.plugin.parcels.max=x"), "lc.plugin.parcels.max"),
        (("parcels.py", "--topic-config", "max"), "expected KEY=VALUE"),
    ],
)
def test_wrong_usage(
    words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    (tmp_path / "notes.txt").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    monkeypatch.chdir(tmp_path)
    done = check(*words)
    assert done.exit_code == 2, done.output
    assert says in done.stderr
    assert "Traceback" not in done.stderr
