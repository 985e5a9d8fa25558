"""`leafcuttr config` shows and checks the settings of plugins, and says how these are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner, Result

from leafcuttr.cli.common.installed import installed
from leafcuttr.cli.config.command import command
from leafcuttr.cli.doctor.findings import DoctorFinding, DoctorSeverity, examine
from leafcuttr.cli.doctor.local.checks import CHECKS, settings_are_good
from leafcuttr.cli.doctor.local.site import Site
from leafcuttr.cli.repair.command import command as repair
from support.listening import closed_port
from support.plugin_folders import install

ACME = """
from leafcuttr_sdk.plugin import Plugin
from leafcuttr_sdk.settings import FindingLevel, Setting, SettingFinding, Type, listener_settings

PLUGIN = Plugin("acme", 1, "Anvils", enabled_by="lc.plugin.acme.enable", extra="heavy", modules={modules})


def leafcuttr_register_settings():
    yield Setting("lc.plugin.acme.enable", Type.BOOLEAN, False, "Switches it on.")
    yield Setting("lc.plugin.acme.secret", Type.PASSWORD, None, "Whispered.")
    yield Setting("lc.plugin.acme.route.<town>", Type.INT, None, "Where to.", minimum=1, dynamic=True)
    yield Setting("lc.plugin.acme.map.<filter>", Type.STRING, None, "Which topic.", check_member=why_not)
    yield Setting("lc.plugin.acme.most", Type.INT, 9, "At most.", check_with_others=less)
    yield Setting("lc.plugin.acme.least", Type.INT, 1, "At least.", minimum=0)
    yield Setting("lc.plugin.acme.key.<filter>", Type.PASSWORD, None, "Its key.", check_with_others=mapped)
    yield Setting("lc.plugin.acme.file", Type.STRING, None, "Its file.", check_file=lines)
    yield from listener_settings("lc.plugin.acme", 7000)


def lines(name, settings):
    for number, line in enumerate(settings.text(name).split("|"), 1):
        if line == "broken":
            raise ValueError("broken")
        least = settings.int("lc.plugin.acme.least")
        yield SettingFinding(FindingLevel(line), f"acme.conf:{{number}}: {{line}}:  of  {{least}}")


def why_not(member, value):
    return None if member.count("#") < 2 and value != member else f"{{member!r}} to {{value!r}} is no mapping"


def less(name, settings):
    least = settings.int("lc.plugin.acme.least")
    if least == 5:
        raise ValueError("five")
    return f"it is less than lc.plugin.acme.least, {{least}}" if settings.int(name) < least else None


def mapped(name, settings):
    place = name.removeprefix("lc.plugin.acme.key.")
    if place == "told":
        return settings.family("lc.plugin.acme.key.<filter>")[place]
    return None if place in settings.family("lc.plugin.acme.map.<filter>") else f"{{place}} is not mapped"


def leafcuttr_register_topic_settings():
    yield Setting("lc.plugin.acme.colour", Type.STRING, "red", "Its colour.", choices=("red", "blue"))
"""
SECRET = "hunter2"


def config(*words: str) -> Result:
    result = CliRunner().invoke(command, words, prog_name="config")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert SECRET not in result.output
    return result


@pytest.fixture(autouse=True)
def acme(site: Path) -> Path:
    return install(site, "acme", ACME.format(modules="()"))


def test_settings_of_a_plugin_stand_under_its_name() -> None:
    text = config("describe", "-o", "lc.plugin.acme.route.Bath=3").stdout
    heading = "plugin acme (off: lc.plugin.acme.enable=true switches it on)\n"
    ours, own = text.split(heading)
    assert "acme" not in ours
    names = [line.split()[0] for line in own.partition("\n\nplugin ")[0].splitlines()[1:]]
    assert names[:4] == [
        "lc.plugin.acme.enable",
        "lc.plugin.acme.secret",
        "lc.plugin.acme.route.<town>",
        "lc.plugin.acme.route.Bath",
    ]
    assert "lc.plugin.acme.ssl.client.auth" in names
    on = config("describe", "lc.plugin.acme.*", "-o", "lc.plugin.acme.enable=true").stdout
    assert on.startswith("plugin acme (enabled)\n")


def test_one_setting_of_a_plugin_in_full() -> None:
    text = config("describe", "lc.plugin.acme.ssl.client.auth").stdout
    assert "one of required, requested, none" in text
    assert "plugin:                acme (off: lc.plugin.acme.enable=true switches it on)" in text
    assert "Kafka's default" not in text
    text = config("describe", "lc.plugin.acme.secret", "-o", "lc.plugin.acme.secret=hunter2").stdout
    assert "(hidden) (-o)" in text
    assert "leafcuttr: " not in config("describe", "--topic", "lc.plugin.acme.colour").output


def test_for_programs() -> None:
    (row,) = json.loads(config("describe", "lc.plugin.acme.route.<town>", "--json").stdout)
    assert (row["plugin"], row["plugin_state"], row["dynamic"], row["value"]) == ("acme", "off", True, None)
    (row,) = json.loads(config("describe", "lc.plugin.acme.secret", "--json").stdout)
    assert (row["default"], row["value"]) == (None, None)
    (row,) = json.loads(config("describe", "num.partitions", "--json").stdout)
    assert (row["plugin"], row["plugin_state"]) == (None, None)
    (row,) = json.loads(config("describe", "--topic", "lc.plugin.acme.colour", "--json").stdout)
    assert (row["value"], row["source"], row["kafka_default"]) == ("red", "default", None)


def test_a_file_is_checked_with_them(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "lc.plugin.acme.ssl.client.auth=perhaps\nlc.plugin.acme.prot=1\nlc.plugin.acme.route.x=0\n"
        "lc.plugin.ghost.secret=hunter2\nlc.plugin.acme.colour=blue\n"
    )
    result = config("check", str(file))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:-1] == [
        "error:   lc.plugin.acme.ssl.client.auth=perhaps (server.properties:1): allowed is one of required, requested, "
        "none",
        "error:   lc.plugin.acme.route.x=0 (server.properties:3): allowed is a whole number, at least 1",
        "warning: lc.plugin.acme.prot (server.properties:2) is not a known setting and has no effect; did you mean "
        "lc.plugin.acme.port?",
        "warning: lc.plugin.ghost.secret (server.properties:4) has no effect: no plugin ghost is installed",
        "warning: lc.plugin.acme.colour (server.properties:5) is a setting of topics and has no effect here",
    ]
    json.loads(config("check", str(file), "--json").stdout)


def test_values_that_do_not_go_together(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "lc.plugin.acme.most=2\nlc.plugin.acme.least=3\nlc.plugin.acme.key.a=hunter2\nlc.plugin.acme.key.b=hunter2\n"
        "lc.plugin.acme.map.a=t\nlc.plugin.acme.key.told=hunter2\n"
    )
    assert config("check", str(file)).exit_code == 0, "it is off"
    result = config("check", str(file), "-o", "lc.plugin.acme.enable=true")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:-1] == [
        "error:   lc.plugin.acme.most=2 (server.properties:1): it is less than lc.plugin.acme.least, 3",
        "error:   lc.plugin.acme.key.b=[hidden] (server.properties:4): b is not mapped",
        "error:   lc.plugin.acme.key.told=[hidden] (server.properties:6): it is not allowed",
    ]
    # Where a value could not be taken, what follows from that is not said.
    words = ("lc.plugin.acme.enable=true", "lc.plugin.acme.least=-1", "lc.plugin.acme.most=0")
    result = config("check", str(file), *(word for each in words for word in ("-o", each)))
    assert "error:   lc.plugin.acme.least=-1 (-o): " in result.stdout
    assert "it is less than" not in result.stdout
    result = config("check", str(file), "-o", "lc.plugin.acme.enable=true", "-o", "lc.plugin.acme.least=5")
    assert (
        "lc.plugin.acme.most=2 (server.properties:1): its check failed with ValueError: five" in result.stdout
    )


def test_a_file_that_a_setting_names_is_checked() -> None:
    on = ("-o", "lc.plugin.acme.enable=true")
    result = config("check", *on, "-o", "lc.plugin.acme.file=note|error|warning|error")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "error:   acme.conf:2: error: of 1",
        "error:   acme.conf:4: error: of 1",
        "warning: acme.conf:3: warning: of 1",
        "note:    acme.conf:1: note: of 1",
        "2 settings given; 2 errors, 1 warning, 1 note",
    ]
    assert config("check", *on, "-o", "lc.plugin.acme.file=note|warning").exit_code == 0
    assert "acme.conf" not in config("check", "-o", "lc.plugin.acme.file=error").stdout, "it is off"
    broken = config("check", *on, "-o", "lc.plugin.acme.file=note|broken").stdout
    assert "error:   lc.plugin.acme.file: its check failed with ValueError: broken" in broken


def test_a_family_has_something_in_the_place_of_its_brackets() -> None:
    result = config("check", "-o", "lc.plugin.acme.map.=x", "-o", "lc.filters.=y")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:-1] == [
        "error:   lc.plugin.acme.map.=x (-o): after lc.plugin.acme.map. there has to be something, in the place of "
        "<filter>",
        "error:   lc.filters.=y (-o): after lc.filters. there has to be something, in the place of <topic or pattern>",
    ]


def test_a_member_of_a_family_is_checked_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("lc.plugin.acme.map.a/#=t\nlc.plugin.acme.map.#/#=t\nlc.plugin.acme.map.x=x\n")
    result = config("check", str(file))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:2] == [
        "error:   lc.plugin.acme.map.#/#=t (server.properties:2): '#/#' to 't' is no mapping",
        "error:   lc.plugin.acme.map.x=x (server.properties:3): 'x' to 'x' is no mapping",
    ]
    assert "2 errors" in result.stdout


def test_differences_from_the_default() -> None:
    given = ("-o", "lc.plugin.acme.port=7001", "-o", f"lc.plugin.acme.secret={SECRET}")
    rows = json.loads(config("diff", *given, "--json").stdout)
    found = {row["setting"]: row for row in rows}
    assert found["lc.plugin.acme.port"]["leafcuttr_default"] == "7000"
    assert found["lc.plugin.acme.port"]["kafka_default"] is None
    assert found["lc.plugin.acme.secret"]["value"] == "(hidden)"
    assert "lc.plugin.acme.host" not in found


def test_settings_of_a_plugin_that_is_off_are_noted() -> None:
    given = ("-o", "lc.plugin.acme.port=7001", "-o", f"lc.plugin.acme.secret={SECRET}")
    said = config("check", *given).stdout
    assert said.splitlines()[0] == (
        "note:    lc.plugin.acme.port, lc.plugin.acme.secret have no effect: the plugin acme is off; "
        "lc.plugin.acme.enable=true switches it on"
    )
    assert "note" not in config("check", *given, "-o", "lc.plugin.acme.enable=true").stdout


def test_a_plugin_that_is_left_out_is_said(site: Path) -> None:
    install(site, "broken", "raise ValueError('at once')")
    result = config("check")
    assert result.exit_code == 0
    assert (
        "warning: plugin broken (leafcuttr-broken 1.2): cannot be imported: ValueError: at once"
        in result.stdout
    )
    result = config("check", "-o", "lc.plugins.strict=true")
    assert result.exit_code == 1
    assert "(lc.plugins.strict=true)" in result.stdout
    given = ("-o", "lc.plugins.disabled=acme", "-o", "lc.plugin.acme.port=7")
    assert "lc.plugin.acme.port (-o) has no effect: it is a setting of the plugin acme; it is left out" in (
        config("check", *given).stdout
    )
    assert config("check", "-o", "lc.plugins.path=/nowhere").exit_code == 2


def test_a_plugin_without_its_packages_is_unavailable(site: Path) -> None:
    install(site, "acme", ACME.format(modules="('nothing_of_this_name',)"))
    assert "plugin acme (unavailable: it needs nothing_of_this_name" in config("describe").stdout
    result = config("check", "-o", "lc.plugin.acme.enable=true")
    assert result.exit_code == 1
    assert (
        "error:   lc.plugin.acme.enable=true (-o): plugin acme: it needs nothing_of_this_name"
        in result.stdout
    )
    assert "pip install 'leafcuttr-acme[heavy]'" in result.stdout


def test_a_conflict_of_two_plugins_is_one_line(site: Path) -> None:
    path = site.parent / "single"
    path.mkdir()
    (path / "thief.py").write_text(
        "from leafcuttr_sdk import Plugin, Setting, Type\n"
        "PLUGIN = Plugin('thief', 1, '')\n"
        "def leafcuttr_register_settings():\n"
        "    return [Setting('lc.plugin.acme.port', Type.INT, 1, 'Mine.')]\n"
    )
    said = [
        line
        for line in config("check", "-o", f"lc.plugins.path={path}").stdout.splitlines()
        if "thief" in line
    ]
    assert said == [
        f"warning: plugin thief ({path}/thief.py): its setting lc.plugin.acme.port: its name has to begin with "
        "lc.plugin.thief."
    ]


def test_the_doctor_checks_them_too() -> None:
    given = ["lc.plugin.acme.port=x", "lc.plugin.acme.secre=hunter2"]
    said = "\n".join(str(finding) for finding in settings_are_good(Site(None, {}, tuple(given))))
    assert "lc.plugin.acme.port=x (-o): allowed is a whole number from -1 to 65535" in said
    assert "did you mean lc.plugin.acme.secret?" in said
    assert "hunter2" not in said


def test_adopted_topics_take_them_too(tmp_path: Path) -> None:
    installed.cache_clear()
    for text, said in (("green", "String must be one of: red, blue"), ("blue", "")):
        words = ("--adopt", str(tmp_path), "-c", f"lc.plugin.acme.colour={text}")
        assert said in CliRunner().invoke(repair, words).output
    assert "Unknown topic config" not in CliRunner().invoke(repair, words).output
    installed.cache_clear()


def listening(tmp_path: Path, *given: str) -> list[DoctorFinding]:
    """What the doctor says of the listeners of plugins, with acme on."""
    port = closed_port()
    words = (
        f"log.dir={tmp_path / 'data'}",
        f"listeners=PLAINTEXT://127.0.0.1:{port}",
        "lc.plugin.acme.enable=true",
    )
    found = list(examine(CHECKS, Site(None, {}, (*words, *(one.format(port=port) for one in given)))))
    return [one.finding for one in found if one.check == "plugins"]


def test_the_doctor_tries_the_listeners_of_plugins(tmp_path: Path) -> None:
    (one,) = listening(tmp_path, "lc.plugin.acme.enable=false")
    assert (one.severity, one.seen) == (DoctorSeverity.FINE, "no plugin that is on listens anywhere")
    (one,) = listening(tmp_path, "lc.plugin.acme.port=0")
    assert (one.severity, one.seen) == (DoctorSeverity.FINE, "can be opened: lc.plugin.acme")
    (one,) = listening(tmp_path, "lc.plugin.acme.port={port}")
    assert one.severity is DoctorSeverity.PROBLEM
    assert "another program listens there" in one.seen and "-o lc.plugin.acme.port=" in one.change[0]


def test_the_doctor_reads_the_keys_of_plugins(tmp_path: Path) -> None:
    (one,) = listening(tmp_path, "lc.plugin.acme.port=0", "lc.plugin.acme.ssl.client.auth=required")
    assert one.severity is DoctorSeverity.PROBLEM and "the listener would be plaintext" in one.seen
    keys = tmp_path / "server.pem"
    trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(keys)
    keys.chmod(0o600)
    given = ("lc.plugin.acme.port=0", f"lc.plugin.acme.ssl.keystore.location={keys}")
    assert [one.severity for one in listening(tmp_path, *given)] == [DoctorSeverity.FINE]
    keys.write_bytes(keys.read_bytes().partition(b"-----BEGIN CERT")[0])
    (one,) = listening(tmp_path, *given, f"lc.plugin.acme.ssl.key.password={SECRET}")
    assert f"lc.plugin.acme.ssl.keystore.location={keys}: " in one.seen
    assert SECRET not in str(one)
