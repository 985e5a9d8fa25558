"""The family of settings: one member switches the plugin on, and what is wrong with one is a line at the start."""

from __future__ import annotations

from pathlib import Path

import pytest

import leafcuttr_filters as plugin
from leafcuttr.config.findings import Level
from leafcuttr.errors import ConfigError
from leafcuttr.plugins.catalogue import examine_all
from leafcuttr.plugins.loaded import PluginState
from leafcuttr.plugins.table import Plugins
from leafcuttr_filters.settings import why_not
from leafcuttr_sdk.testing import running_broker


def examined(*overrides: str) -> tuple[list[str], Plugins]:
    _, findings, plugins = examine_all(None, {}, overrides)
    return [one.line for one in findings if one.level is Level.ERROR], plugins


@pytest.mark.setting("lc.record.filter.<name>")
def test_a_filter_switches_the_plugin_on() -> None:
    lines, plugins = examined("lc.record.filter.mine=tombstones", "lc.record.filter.other=dedupe window=1h")
    assert lines == []
    found = plugins.get("filters")
    assert found is not None and found.state is PluginState.ENABLED
    assert [spec.name for spec in found.record_filters] == ["mine", "other"]
    assert plugins.record_filters().keys() == {"mine", "other"}


def test_without_one_it_is_off_and_says_how() -> None:
    _, plugins = examined()
    found = plugins.get("filters")
    assert found is not None and found.state is PluginState.OFF
    assert found.why == "lc.record.filter.<name>=... switches it on"


def test_what_is_wrong_is_one_line_with_setting_value_and_what_is_allowed() -> None:
    lines, _ = examined("lc.record.filter.mine=mask feilds=a")
    assert lines == [
        "lc.record.filter.mine=mask feilds=a (-o): mask has no option 'feilds'; did you mean fields?",
    ]
    lines, _ = examined("lc.record.filter.a b=tombstones")
    assert lines == [
        "lc.record.filter.a b=tombstones (-o): the name of a filter has at most 100 of the letters, digits and ._-"
    ]


def test_a_function_that_is_not_there_is_found_at_the_start(tmp_path: Path) -> None:
    assert (
        why_not("f", f"python path={tmp_path}/no.py")
        == f"path={tmp_path}/no.py: there is no file {tmp_path}/no.py"
    )
    assert why_not("f", "python path=no") == (
        "path=no: allowed is module:function, or a file as name.py or name.py:function"
    )
    (tmp_path / "there.py").write_text("raise SystemExit  # is not run by the check\n")
    assert why_not("f", f"python path={tmp_path}/there.py") is None


def test_a_salt_that_is_not_there_is_found_at_the_start(tmp_path: Path) -> None:
    assert why_not("f", "hash fields=a salt.file=/no/salt") == "salt.file=/no/salt: there is no such file"
    (tmp_path / "salt").write_text("x")
    assert why_not("f", f"hash fields=a salt.file={tmp_path}/salt") is None


def test_variables_of_the_environment_name_filters() -> None:
    _, _, plugins = examine_all(None, {"KAFKA_LC_RECORD_FILTER_MINE": "tombstones"})
    assert plugins.record_filters().keys() == {"mine"}


def test_a_broker_does_not_start_with_one_that_is_wrong(tmp_path: Path) -> None:
    settings = {"lc.record.filter.mine": "nothing"}
    line = r"lc\.record\.filter\.mine=nothing \(settings\): there is no type of filter"
    with pytest.raises(ConfigError, match=line), running_broker(tmp_path, settings):
        pass


def test_the_module_is_light() -> None:
    assert plugin.PLUGIN.enabled_by == "lc.record.filter.<name>"
