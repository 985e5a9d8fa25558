"""What a plugin sees of settings, and nothing else."""

import logging

import pytest

from leafcuttr.config.catalog import CORE, Catalog
from leafcuttr.config.declared import section
from leafcuttr.config.settings import Settings
from leafcuttr.config.topic import topic_config
from leafcuttr.plugins.settings_views import plugin_settings, topic_settings
from leafcuttr_sdk.plugin import Plugin
from leafcuttr_sdk.settings import Setting, Type

P = "lc.plugin.acme."
OF_BROKER = (
    Setting(f"{P}on", Type.BOOLEAN, True, "On."),
    Setting(f"{P}count", Type.INT, 3, "A count.", dynamic=True),
    Setting(f"{P}size", Type.LONG, 4, "A size."),
    Setting(f"{P}share", Type.DOUBLE, 0.5, "A share."),
    Setting(f"{P}name", Type.STRING, None, "A name."),
    Setting(f"{P}secret", Type.PASSWORD, None, "A secret."),
    Setting(f"{P}towns", Type.LIST, ("Bath",), "Towns."),
    Setting(f"{P}route.<town>", Type.STRING, None, "A route.", dynamic=True),
)
OF_TOPICS = (
    Setting(f"{P}colour", Type.STRING, "red", "A colour."),
    Setting(f"{P}map.<key>", Type.INT, None, "A map."),
    Setting(f"{P}map.deep.<key>", Type.INT, None, "A deeper one."),
)


@pytest.fixture
def catalog() -> Catalog:
    other = section(
        Plugin("other", 1, ""), (Setting("lc.plugin.other.x", Type.INT, 1, "X."),), (), bundled=False
    )
    return CORE.with_plugin(section(Plugin("acme", 1, ""), OF_BROKER, OF_TOPICS, bundled=False)).with_plugin(
        other
    )


def test_values_by_their_type(catalog: Catalog) -> None:
    seen = plugin_settings(Settings({f"{P}secret": "hush", f"{P}route.a/+": "b"}, catalog), "acme")
    assert seen.bool(f"{P}on") is True
    assert (seen.int(f"{P}count"), seen.int(f"{P}size")) == (3, 4)
    assert seen.float(f"{P}share") == 0.5
    assert seen.optional_text(f"{P}name") is None
    assert seen.text(f"{P}secret") == "hush"
    assert seen.list(f"{P}towns") == ("Bath",)
    assert seen.family(f"{P}route.<town>") == {"a/+": "b"}
    with pytest.raises(ValueError, match=r"lc\.plugin\.acme\.name is not set"):
        seen.text(f"{P}name")
    for accessor in (seen.bool, seen.float, seen.text, seen.list):
        with pytest.raises(TypeError, match=r"lc\.plugin\.acme\.count is"):
            accessor(f"{P}count")
    with pytest.raises(TypeError, match="neither int nor long"):
        seen.int(f"{P}secret")


@pytest.mark.parametrize(
    "name",
    ["num.partitions", "lc.plugin.other.x", f"{P}nothing", f"{P}colour", f"{P}route.<town>", f"{P}route.a"],
)
def test_others_are_not_there(catalog: Catalog, name: str) -> None:
    seen = plugin_settings(Settings({f"{P}route.a": "b"}, catalog), "acme")
    with pytest.raises(KeyError, match="the plugin acme"):
        seen.int(name)
    with pytest.raises(KeyError):
        seen.family(f"{P}map.<key>")


def test_changes_reach_callbacks_until_they_are_ended(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    core = Settings({}, catalog)
    seen = plugin_settings(core, "acme")
    told: list[frozenset[str]] = []

    said = "no"

    def breaks(names: frozenset[str]) -> None:
        raise ValueError(said)

    seen.on_change(breaks)
    end = seen.on_change(told.append)
    with caplog.at_level(logging.ERROR):
        core.replace_dynamic({f"{P}count": "9", "log.retention.ms": "5", f"{P}route.x": "y"})
    assert told == [{f"{P}count", f"{P}route.x"}]
    assert seen.int(f"{P}count") == 9
    (line,) = caplog.messages
    assert line.startswith("plugin acme: callback on changed settings failed: ValueError: no (")
    core.replace_dynamic({f"{P}count": "9", f"{P}route.x": "y"})
    assert len(told) == 1, "only what is about this plugin"
    said = "open sesame is no number"
    with caplog.at_level(logging.DEBUG):
        core.replace_dynamic({f"{P}count": "9", f"{P}route.x": "y", f"{P}secret": "open sesame"})
    assert caplog.messages[-1] == "plugin acme: callback on changed settings failed: ValueError"
    assert "sesame" not in caplog.text
    told.clear()
    end()
    core.replace_dynamic({})
    assert told == []


def test_a_topics_values(catalog: Catalog) -> None:
    core = Settings({}, catalog)
    config = topic_config(core, {f"{P}map.a": "1", f"{P}map.deep.b": "2"})
    seen = topic_settings(core, "acme", config)
    assert seen.text(f"{P}colour") == "red"
    assert seen.family(f"{P}map.<key>") == {"a": 1}
    assert seen.family(f"{P}map.deep.<key>") == {"b": 2}
    with pytest.raises(KeyError):
        seen.int(f"{P}count")
    with pytest.raises(KeyError):
        topic_settings(core, "other", config).text(f"{P}colour")
    seen.on_change(lambda names: None)()


def test_a_plugin_that_declares_nothing_sees_nothing() -> None:
    with pytest.raises(KeyError):
        plugin_settings(Settings(), "acme").int("num.partitions")
