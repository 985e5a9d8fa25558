"""What is added to the SDK harms nobody: a plugin of before goes on, and one that needs what is not there is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr.plugins.finding import Choice, find_plugins
from leafcuttr.plugins.loaded import Loaded, PluginState
from leafcuttr.plugins.registration import RETURNS
from leafcuttr_sdk import API_MINOR, API_VERSION
from support.plugin_folders import install

PLUGIN = """
{before}
from leafcuttr_sdk import Plugin

PLUGIN = Plugin("acme", 1, "For a test."{more})
{after}
"""


def found(site: Path, more: str, before: str = "", after: str = "") -> Loaded:
    install(site, "acme", PLUGIN.format(more=more, before=before, after=after))
    return next(one for one in find_plugins(Choice()).all if one.name == "acme")


NEWER = API_MINOR + 1
LACKS = (
    f"it needs version {API_VERSION}.{NEWER} of the plugin API, and this LeafCuttr has {API_VERSION}.{API_MINOR}: "
    "install a newer leafcuttr, or an older leafcuttr-acme"
)


@pytest.mark.parametrize("minor", range(API_MINOR + 1))
def test_an_older_plugin_and_one_of_now(site: Path, minor: int) -> None:
    one = found(site, f", api_minor={minor}")
    assert one.state is PluginState.OFF, one.why


@pytest.mark.parametrize(
    ("before", "more", "after"),
    [
        ("", "", ""),
        ("from leafcuttr_sdk import what_is_new", "", ""),
        ("", ", what_is_new=1", ""),
        ("", "", "def leafcuttr_register_new_things(): return ()"),
    ],
    ids=["nothing else", "a name", "a field", "a hook"],
)
def test_a_newer_plugin_is_told_what_it_lacks(site: Path, before: str, more: str, after: str) -> None:
    one = found(site, f", api_minor={NEWER}{more}", before, after)
    assert (one.state, one.why) == (PluginState.FAILED, LACKS)


def test_a_file_is_told_to_change(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(PLUGIN.format(more=f", api_minor={NEWER}", before="", after=""))
    one = next(one for one in find_plugins(Choice(folder=str(tmp_path))).all if one.name == "acme")
    assert one.why == LACKS.replace("an older leafcuttr-acme", "change the file")


@pytest.mark.parametrize("minor", ["'1'", "1.0", "True", "None"])
def test_a_minor_version_has_to_be_a_number(site: Path, minor: str) -> None:
    assert "it has to be a number, as" in found(site, f", api_minor={minor}").why


HOOK = "def leafcuttr_register_new_things(broker, more): raise OSError('called')"


def test_an_optional_hook_that_is_not_known_is_ignored(site: Path) -> None:
    after = f"{HOOK}\ndef leafcuttr_register_settings(): return ()"
    one = found(site, ", optional_hooks=('leafcuttr_register_new_things',)", after=after)
    assert one.state is PluginState.OFF, one.why
    assert one.hooks is not None and one.hooks.names == ("leafcuttr_register_settings",)


def test_another_one_stops_the_plugin_as_before(site: Path) -> None:
    one = found(site, ", optional_hooks=('leafcuttr_register_other_things',)", after=HOOK)
    assert "leafcuttr_register_new_things is not a hook; did you mean" in one.why


def test_a_hook_that_is_known_is_called_also_if_it_is_optional(site: Path) -> None:
    after = "def leafcuttr_register_settings(): raise OSError('called')"
    one = found(site, ", optional_hooks=('leafcuttr_register_settings',)", after=after)
    assert one.why.startswith("leafcuttr_register_settings raised OSError: called")


@pytest.mark.parametrize("value", ["'leafcuttr_register_settings'", "[]", "(1,)"])
def test_optional_hooks_are_a_tuple_of_names(site: Path, value: str) -> None:
    assert "it has to be a tuple of str" in found(site, f", optional_hooks={value}").why


def test_a_hook_that_is_added_harms_no_plugin_of_before(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leafcuttr_sdk import hooks

    def leafcuttr_register_new_things(broker: object) -> tuple[()]:
        return ()

    monkeypatch.setattr(hooks, "leafcuttr_register_new_things", leafcuttr_register_new_things, raising=False)
    monkeypatch.setitem(RETURNS, "leafcuttr_register_new_things", "Setting")
    one = found(site, "", after="def leafcuttr_register_settings(): return ()")
    assert one.state is PluginState.OFF, one.why
