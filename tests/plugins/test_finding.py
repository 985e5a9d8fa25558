"""What becomes of a plugin that is found: sound, disabled, of another API version, broken in each way that there is."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from leafcuttr.config.load import load_settings
from leafcuttr.errors import PluginError, StartError
from leafcuttr.plugins import finding
from leafcuttr.plugins.catalogue import Finder
from leafcuttr.plugins.finding import Choice, find_plugins
from leafcuttr.plugins.loaded import Loaded, PluginState
from leafcuttr.plugins.table import Plugins
from leafcuttr.runtime.plugin_parts import interrupts_are_failures
from support.plugin_folders import SOUND, install

HEAD = """
    from leafcuttr_sdk import *
    from leafcuttr_sdk.plugin import Plugin

    PLUGIN = Plugin(name="acme", api_version=1, summary="Does something.")
"""


def found(choice: Choice | None = None) -> dict[str, Loaded]:
    """Plugins other than those of the installation that runs the tests."""
    return {one.name: one for one in find_plugins(choice or Choice()).all if not one.origin.bundled}


def broken(site: Path, source: str, **more: str) -> str:
    """Why a plugin with this source is left out."""
    install(site, "acme", source, **more)
    one = found()["acme"]
    assert one.state is PluginState.FAILED
    assert "\n" not in one.why
    return one.why


def test_sound(site: Path) -> None:
    install(site, "acme")
    one = found()["acme"]
    assert (one.state, str(one.origin), one.module) == (PluginState.OFF, "leafcuttr-acme 1.2", "acme_plugin")
    assert one.plugin is not None and one.plugin.summary == "Does nothing."
    assert one.hooks is not None and one.hooks.names == ()


def test_disabled_is_not_imported(site: Path) -> None:
    install(site, "acme", "raise RuntimeError('imported')")
    one = found(Choice(disabled=frozenset({"acme"})))["acme"]
    assert (one.state, one.why) == (PluginState.DISABLED, "lc.plugins.disabled names it")


def test_one_that_fails_leaves_the_others(site: Path) -> None:
    install(site, "acme", "raise RuntimeError('no')")
    install(site, "better")
    states = {name: one.state for name, one in found().items()}
    assert states == {"acme": PluginState.FAILED, "better": PluginState.OFF}


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        (2, "install a newer leafcuttr, or an older leafcuttr-acme"),
        (0, "install a newer leafcuttr-acme"),
    ],
)
def test_another_api_version(site: Path, version: int, advice: str) -> None:
    why = broken(site, SOUND.format(name="acme").replace("api_version=1", f"api_version={version}"))
    text = (
        f"it was written for version {version} of the plugin API, and this LeafCuttr has version 1: {advice}"
    )
    assert why == text


@pytest.mark.parametrize(
    "source",
    [
        "from leafcuttr_sdk import Plugin, Tomorrow\nPLUGIN = Plugin(name='acme', api_version=2, summary='')",
        "from leafcuttr_sdk import Plugin\nPLUGIN = Plugin(name='acme', api_version=2, summary='', colour='red')",
    ],
)
def test_another_api_version_that_cannot_even_be_imported(site: Path, source: str) -> None:
    assert broken(site, source).startswith("it was written for version 2 of the plugin API")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("x = 1 / 0", "cannot be imported: ZeroDivisionError: division by zero ({file}, line 1)"),
        ("def x(:", "cannot be imported: SyntaxError: invalid syntax ({file}, line 1)"),
        ("import sys\nsys.exit('bye')", "cannot be imported: SystemExit: bye ({file}, line 2)"),
        ("raise ValueError('one\\ntwo')", "cannot be imported: ValueError: one ({file}, line 1)"),
        ("import not_there", "cannot be imported: ModuleNotFoundError: No module named 'not_there' ({file}, line 1)"),
        ("", "the module acme_plugin has no PLUGIN; it has to be a leafcuttr_sdk.Plugin"),
        ("PLUGIN = 'acme'", "the module acme_plugin has a PLUGIN that is a str; it has to be a leafcuttr_sdk.Plugin"),
        (SOUND.format(name="other"), "its entry point calls it acme, its PLUGIN other"),
        (
            SOUND.format(name="Acme"),
            "'Acme' cannot be its name: lower-case letters, digits and -, beginning with a letter",
        ),
        (SOUND.format(name="acme").replace("=1", "='1'"), "its api_version is '1'; it has to be a number, as 1"),
    ],
)  # fmt: skip
def test_broken_modules(site: Path, source: str, why: str) -> None:
    assert broken(site, source) == why.format(file=site / "acme_plugin.py")


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("nowhere_at_all", "its entry point names the module nowhere_at_all, which is not there"),
        ("acme_plugin.deeper", "its entry point names the module acme_plugin.deeper, which is not there"),
        ("acme_plugin:PLUGIN",
         "its entry point names acme_plugin:PLUGIN; allowed is a module, as in NAME = package.module"),
    ],
)  # fmt: skip
def test_entry_points_that_lead_nowhere(site: Path, entry: str, why: str) -> None:
    assert broken(site, SOUND.format(name="acme"), entry=entry) == why


def test_two_of_one_name(site: Path) -> None:
    install(site, "acme", distribution="leafcuttr-acme")
    install(site, "acme", distribution="leafcuttr-copy")
    first, second = (one for one in find_plugins(Choice()).all if one.name == "acme")
    assert first.state is PluginState.OFF
    assert second.line == (
        "plugin acme (leafcuttr-copy 1.2): leafcuttr-acme 1.2 has a plugin of that name too, and that one is taken"
    )


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        ("def leafcuttr_register_service(): return ()",
         "leafcuttr_register_service is not a hook; did you mean leafcuttr_register_services?"),
        ("def leafcuttr_register_filters(): return ()",
         "leafcuttr_register_filters is not a hook; did you mean leafcuttr_register_record_filters?"),
        ("def leafcuttr_register_services(broker): return ()",
         "leafcuttr_register_services wants broker; it can have no arguments"),
        ("def leafcuttr_register_metrics(borker): return ()",
         "leafcuttr_register_metrics wants borker; it can have only broker"),
        ("def leafcuttr_register_settings(): 1 / 0",
         "leafcuttr_register_settings raised ZeroDivisionError: division by zero ({file}, line 7)"),
        ("def leafcuttr_register_settings(): return 5",
         "leafcuttr_register_settings: it returned an int; it has to return an iterable of Setting"),
        ("def leafcuttr_register_settings(): pass",
         "leafcuttr_register_settings: it returned None; it has to return an iterable of Setting"),
        ("def leafcuttr_register_settings(): return Setting('lc.plugin.acme.a', Type.INT, 1, 'A.')",
         "leafcuttr_register_settings: it returned a Setting; it has to return an iterable of Setting"),
        ("def leafcuttr_register_settings(): yield 'lc.plugin.acme.a'",
         "leafcuttr_register_settings: it returned a str among others; all have to be of type Setting"),
        ("def leafcuttr_register_settings(): yield Setting(None, Type.INT, 1, 'A.')",
         "leafcuttr_register_settings: a Setting has None as its name; it has to be a text"),
        ("async def leafcuttr_register_settings(): return ()",
         "leafcuttr_register_settings: it returned a coroutine (hooks are not async); "
         "it has to return an iterable of Setting"),
    ],
)  # fmt: skip
def test_broken_hooks(site: Path, hook: str, why: str) -> None:
    source = dedent(HEAD) + "\n" + hook
    assert broken(site, source) == why.format(file=site / "acme_plugin.py")


@pytest.mark.parametrize(
    ("hook", "made", "of"),
    [
        ("leafcuttr_register_record_formats", "open", "RecordFormat"),
        ("leafcuttr_register_schema_formats", "parse", "SchemaFormat"),
    ],
)
@pytest.mark.parametrize("lacks", ["name", "method"])
def test_what_has_the_parts_of_a_protocol_is_of_it(
    site: Path, hook: str, made: str, of: str, lacks: str
) -> None:
    parts = {"name": "    name = 'x'", "method": f"    def {made}(self, *words): pass"}
    for without, is_one in (("", True), (lacks, False)):
        body = "\n".join(part for kind, part in parts.items() if kind != without)
        source = f"{dedent(HEAD)}\nclass Thing:\n{body}\n\ndef {hook}(): yield Thing()\n"
        folder = site / (without or "whole")
        folder.mkdir(parents=True)
        (folder / "acme.py").write_text(source)
        one = find_plugins(Choice(folder=str(folder))).get("acme")
        assert one is not None and one.hooks is not None, one
        if is_one:
            assert len(one.hooks.call(hook)) == 1
        else:
            with pytest.raises(PluginError, match=f"all have to be of type {of}"):
                one.hooks.call(hook)


def test_a_start_does_not_look_for_the_packages_of_what_is_off() -> None:
    finder = Finder()
    settings, _ = load_settings(None, {}, (), finder)
    finder.plugins.start(settings)
    off = [one for one in finder.plugins.usable if one.plugin is not None and one.plugin.modules]
    assert off and {one.state for one in off} == {PluginState.OFF}
    assert {one._missing for one in off} == {None}
    finder.plugins.settle(settings)
    assert None not in {one._missing for one in off}


def test_folder_of_single_files(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "count_words.py").write_text(SOUND.format(name="count-words"))
    (folder / "broken.py").write_text(SOUND.format(name="brokn"))
    for passed_over in ("_helper", "test_count_words", "count_words_test", "conftest"):
        (folder / f"{passed_over}.py").write_text("raise RuntimeError")
    (folder / "readme.txt").write_text("no plugin")
    (folder / "folder.py").mkdir()
    plugins = found(Choice(folder=str(folder)))
    assert {name: one.state for name, one in plugins.items()} == {
        "broken": PluginState.FAILED,
        "count-words": PluginState.OFF,
    }
    assert plugins["broken"].why == "its file calls it broken, its PLUGIN brokn"
    assert str(plugins["count-words"].origin) == str(folder / "count_words.py")


def test_a_file_for_another_api_version(tmp_path: Path) -> None:
    for name, version in (("newer", 2), ("older", 0)):
        source = SOUND.format(name=name).replace("api_version=1", f"api_version={version}")
        (tmp_path / f"{name}.py").write_text(source)
    plugins = found(Choice(folder=str(tmp_path)))
    assert plugins["newer"].why.endswith(": install a newer leafcuttr, or change the file")
    assert plugins["older"].why.endswith(": change the file, or get a newer one")


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StartError) as error:
        find_plugins(Choice(folder=str(tmp_path / "none"), folder_from="server.properties:3"))
    assert (
        str(error.value)
        == f"lc.plugins.path={tmp_path / 'none'} (server.properties:3): No such file or directory"
    )


def test_no_plugins_at_all() -> None:
    plugins = Plugins()
    assert (plugins.all, plugins.services(), plugins.record_filters(), list(plugins.cli_commands())) == (
        (),
        [],
        {},
        [],
    )


HOSTILE = {
    "no attributes": ("def __getattr__(name): raise OSError(name)", "cannot be imported: OSError: PLUGIN ("),
    "a field": (
        """
        from leafcuttr_sdk.plugin import Plugin

        class Odd(Plugin):
            @property
            def api_minor(self): raise KeyboardInterrupt

        PLUGIN = Odd("acme", 1, "Odd.")
        """,
        None,
    ),
    "fields": (
        """
        from leafcuttr_sdk.plugin import Plugin

        class Odd(Plugin):
            def __iter__(self): raise SystemExit(3)

        PLUGIN = Odd("acme", 1, "Odd.")
        """,
        "cannot be imported: SystemExit: 3 (",
    ),
    "names": (HEAD + "    def __dir__(): raise SystemExit(3)", "its hooks cannot be read: SystemExit: 3 ("),
    "signature": (
        HEAD
        + """
    def leafcuttr_register_services(what): pass
    leafcuttr_register_services.__signature__ = 3
    """,
        "its hooks cannot be read: TypeError: ",
    ),
    "endless": (
        HEAD
        + """
    def leafcuttr_register_settings():
        while True:
            yield Setting("lc.plugin.acme.x", Type.INT, 0, "X.")
    """,
        "leafcuttr_register_settings: it returned more than 10000 of Setting",
    ),
}
"""Modules that raise where they are looked at, or have no end, and why the plugin is left out; None if it is not."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_module_that_does_badly_where_it_is_looked_at(site: Path, kind: str) -> None:
    source, why = HOSTILE[kind]
    install(site, "acme", source)
    install(site, "better")
    with interrupts_are_failures():
        one, better = found()["acme"], found()["better"]
    assert better.state is PluginState.OFF
    if why is None:
        assert one.state is PluginState.OFF and one.plugin is not None and one.plugin.api_minor == 0
    else:
        assert one.state is PluginState.FAILED
        assert one.why.startswith(why)


def test_a_module_that_hangs_where_its_hooks_are_looked_for(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "LIMIT_S", 0.05)
    why = broken(site, HEAD + "    import time\n    def __dir__(): time.sleep(3600)\n")
    assert why.startswith("looking for its hooks has taken longer than 0.05 s: it is at ")
