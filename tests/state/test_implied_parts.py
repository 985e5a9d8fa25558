"""Which topics have what their settings imply, and what is remembered of plugins that are gone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from leafcuttr.config.catalog import CORE, Section
from leafcuttr.config.setting import BOOLEAN, DOUBLE, LIST, PASSWORD, STRING, ConfigKey, Value
from leafcuttr.config.settings import Settings
from leafcuttr.config.topic import stored_topic_config
from leafcuttr.errors import InvalidConfig
from leafcuttr.state.implied_parts import FILTERS, VALIDATORS, Implied, ImpliedParts, Unasked, WantedParts
from leafcuttr.state.metadata import FILE_NAME, MetadataStore

CHECK = ConfigKey("lc.plugin.x.check", BOOLEAN, False, "Whether.")
MARK = ConfigKey("lc.plugin.x.mark", STRING, None, "What.")
RATIO = ConfigKey("lc.plugin.x.ratio", DOUBLE, 0.5, "How much.", minimum=0.1)
WORDS = ConfigKey("lc.plugin.x.words", LIST, ("a",), "Which.", choices=("a", "b"))
SECRET = ConfigKey("lc.plugin.x.secret", PASSWORD, None, "Secret.")
FIELD = ConfigKey("lc.plugin.x.field.<name>", STRING, None, "Of a field.")
DEEPER = ConfigKey("lc.plugin.x.field.deep.<name>", STRING, None, "Of a deep field.")
ROWS = (CHECK, MARK, RATIO, WORDS, SECRET, FIELD, DEEPER)
KNOWN = CORE.with_plugin(Section("x", topic=ROWS))


def implied(key: ConfigKey, kind: str = FILTERS, lacks: str = "") -> Implied:
    return Implied(key, kind, key.name.removeprefix("lc.plugin.x.").partition(".")[0], "x", lacks)


@pytest.fixture
def store(tmp_path: Path) -> MetadataStore:
    return MetadataStore.open(tmp_path)


def parts(store: MetadataStore, *all: Implied, settings: Settings | None = None) -> ImpliedParts:
    found = ImpliedParts(store, settings or Settings(catalog=KNOWN))
    found.replace(all, {"x"}, {}, [])
    return found


@pytest.mark.parametrize(
    ("key", "text", "has"),
    [
        (CHECK, "true", True),
        (CHECK, " TRUE ", True),
        (CHECK, "false", False),
        (CHECK, "no boolean", True),  # to be on the safe side
        (MARK, "m", True),
        (MARK, "", True),
        (RATIO, "0.50", False),
        (RATIO, "0.6", True),
        (RATIO, "0.01", True),  # it was allowed once
        (WORDS, "a", False),
        (WORDS, "a,b", True),
        (WORDS, "c", True),
        (SECRET, "s", True),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_setting_implies_at_another_value_than_its_default(
    store: MetadataStore, key: ConfigKey, text: str, has: bool, known: bool
) -> None:
    settings = Settings(catalog=KNOWN if known else CORE)
    found = parts(store, implied(key), settings=settings)
    overrides = {key.name: text}
    config = stored_topic_config(settings, overrides)
    assert found.wanted(config, overrides).filters == ((key.name.rpartition(".")[2],) if has else ())
    assert not found.wanted(stored_topic_config(settings, {}), {})


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("lc.plugin.x.field.a", ("field",)),
        ("lc.plugin.x.field.a.b", ("field",)),
        ("lc.plugin.x.field.deep.a", ()),
        ("lc.plugin.x.field.", ()),
        ("lc.plugin.x.fields", ()),
    ],
)
def test_a_member_of_a_family_implies_whatever_its_value(
    store: MetadataStore, name: str, has: tuple[str, ...]
) -> None:
    settings = Settings(catalog=KNOWN)
    found = parts(store, implied(FIELD), settings=settings)
    assert found.wanted(stored_topic_config(settings, {name: ""}), {name: ""}).filters == has


def test_what_is_implied_stands_before_what_is_named_and_once(store: MetadataStore) -> None:
    settings = Settings(catalog=KNOWN)
    found = parts(store, implied(MARK), implied(CHECK), implied(RATIO, VALIDATORS), settings=settings)
    overrides = {
        "lc.filters": "other,check",
        "lc.validators": "v",
        CHECK.name: "true",
        MARK.name: "m",
        RATIO.name: "1",
    }
    config = stored_topic_config(settings, overrides)
    assert found.wanted(config, overrides) == WantedParts(("ratio", "v"), ("mark", "check", "other"))
    assert ImpliedParts(store, settings).wanted(config, {}).lack  # as before the plugins have been asked


def test_what_cannot_be_had_is_not_set(store: MetadataStore) -> None:
    found = parts(
        store, implied(CHECK, lacks="which is off"), implied(SECRET, lacks="which is off"), implied(MARK)
    )
    found.vet({}, {MARK.name: "m", CHECK.name: "false"})
    found.vet({CHECK.name: "true"}, {CHECK.name: "true", MARK.name: "m"})
    with pytest.raises(InvalidConfig) as caught:
        found.vet({CHECK.name: "false"}, {CHECK.name: "true"})
    needs = "it needs the record filter check of plugin x, which is off"
    assert str(caught.value) == f"Invalid value true for configuration {CHECK.name}: {needs}"
    with pytest.raises(InvalidConfig, match=r"Invalid value \[hidden\] for") as caught:
        found.vet({}, {SECRET.name: "sesame"})
    assert "sesame" not in str(caught.value)


def test_what_is_remembered(store: MetadataStore) -> None:
    parts(store, *map(implied, ROWS))
    gone = Settings(catalog=CORE)
    overridden: list[dict[str, str]] = [{row.name: "true"} for row in ROWS[:3]] + [
        {"lc.plugin.x.field.a": "b"}
    ]
    again = ImpliedParts(store, gone)
    again.replace((), (), {"x": "which is broken"}, overridden)
    for overrides in overridden:
        wanted = again.wanted(stored_topic_config(gone, overrides), overrides)
        (name,) = overrides
        assert wanted.lack.startswith(f"it has {name}, and for that it needs the record filter")
        assert wanted.lack.endswith("of plugin x, which is broken")
    # What no topic has set is forgotten.
    assert {one.setting for one in store.implied_parts()} == {*(row.name for row in ROWS[:3]), FIELD.name}
    changes = store.changes
    again.replace((), (), {}, overridden)
    assert store.changes == changes  # nothing was written
    assert again.wanted(stored_topic_config(gone, {}), overridden[0]).lack.endswith("which is not installed")
    # The plugin is back, and says less than before.
    again.replace([implied(MARK)], {"x"}, {}, overridden)
    assert [one.setting for one in store.implied_parts()] == [MARK.name]
    assert not again.wanted(stored_topic_config(gone, {}), {CHECK.name: "true"})


def test_a_default_of_the_broker_under_a_name_that_is_unknown_now(store: MetadataStore) -> None:
    parts(store, implied(MARK), implied(CHECK))
    gone = Settings({MARK.name: "m"}, catalog=CORE)
    gone.replace_dynamic({CHECK.name: "false"}, cluster=True)
    told: list[frozenset[str]] = []
    gone.on_change(told.append)
    found = ImpliedParts(store, gone)
    found.replace((), (), {}, [])
    config = stored_topic_config(gone, {})
    assert found.wanted(config, {}).lack.startswith(f"it has {MARK.name}, ")
    assert found.wanted(config, {}).filters == ("mark",)
    gone.replace_dynamic({CHECK.name: "true"})
    assert {part.setting for part in store.implied_parts()} == {MARK.name, CHECK.name}
    assert set(found.wanted(config, {}).filters) == {"mark", "check"}
    gone.replace_dynamic({})
    assert found.wanted(config, {}).filters == ("mark",)
    assert told == [frozenset({CHECK.name})] * 2


def test_what_is_said_twice_is_remembered(store: MetadataStore, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(catalog=KNOWN)
    found = parts(store, implied(CHECK), implied(MARK), implied(CHECK), settings=settings)
    assert {one.setting for one in store.implied_parts()} == {CHECK.name, MARK.name}
    overrides = {CHECK.name: "true"}
    assert found.wanted(stored_topic_config(settings, overrides), overrides).filters == ("check",)
    assert not caplog.text


def test_defaults_are_remembered_with_their_types(store: MetadataStore) -> None:
    parts(store, *map(implied, ROWS))
    defaults: dict[str, Value] = {row.name: row.default for row in ROWS}
    assert {one.setting.name: one.setting.default for one in ImpliedParts(store, Settings())._all} == defaults


def test_a_disk_that_refuses_is_a_line_in_the_log(
    store: MetadataStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON implied_parts BEGIN SELECT RAISE(FAIL, 'disk is full'); END"
        )
    connection.close()
    found = parts(store, implied(CHECK))
    assert "imply filters and validators is not stored: " in caplog.text and "disk is full" in caplog.text
    settings = Settings(catalog=KNOWN)
    assert found.wanted(stored_topic_config(settings, {CHECK.name: "true"}), {}).filters == ("check",)


class Asked:
    """A plugin that says what `said` are, and counts how often it is asked."""

    def __init__(self, *said: Implied) -> None:
        self.said = said
        self.times = 0

    def __call__(self) -> tuple[Implied, ...]:
        self.times += 1
        return self.said


def later(
    store: MetadataStore, asked: Asked, *overridden: dict[str, str], settings: Settings | None = None
) -> ImpliedParts:
    found = ImpliedParts(store, settings or Settings(catalog=KNOWN))
    found.replace((), (), {}, overridden, [Unasked("x", [implied(row) for row in ROWS], asked)])
    return found


def test_a_plugin_is_asked_once_a_topic_has_one_of_its_settings(store: MetadataStore) -> None:
    settings, asked = Settings(catalog=KNOWN), Asked(implied(CHECK, lacks="which is off"))
    found = later(store, asked, settings=settings)
    changes = store.changes
    for overrides in ({}, {CHECK.name: "false"}, {"retention.ms": "1"}):
        assert not found.wanted(stored_topic_config(settings, overrides), overrides)
        found.vet({}, overrides)
    found.vet({MARK.name: "m"}, {MARK.name: "m"})  # as it was
    assert (asked.times, store.changes) == (0, changes)
    overrides = {CHECK.name: "true"}
    for _ in range(2):
        assert found.wanted(stored_topic_config(settings, overrides), overrides).lack.endswith("which is off")
    assert asked.times == 1
    assert [one.setting for one in store.implied_parts()] == [CHECK.name]


@pytest.mark.parametrize("name", [MARK.name, "lc.plugin.x.field.a"])
def test_a_plugin_is_asked_before_a_topic_gets_one_of_its_settings(store: MetadataStore, name: str) -> None:
    asked = Asked(implied(FIELD if name != MARK.name else MARK, lacks="which is off"))
    found = later(store, asked)
    for _ in range(2):
        with pytest.raises(InvalidConfig, match="which is off"):
            found.vet({}, {name: "a"})
    assert asked.times == 1


def test_a_plugin_whose_settings_topics_have_is_asked_at_the_start(store: MetadataStore) -> None:
    asked = Asked(implied(CHECK, lacks="which is off"))
    later(store, asked, {}, {CHECK.name: "true"})
    assert asked.times == 1
    assert [one.setting for one in store.implied_parts()] == [CHECK.name]
    # No topic has it any more: it is forgotten, and the plugin is not asked.
    later(store, asked, {})
    assert asked.times == 1
    assert not store.implied_parts()


def test_a_plugin_whose_default_the_broker_has_is_asked_at_the_start(store: MetadataStore) -> None:
    row = MARK._replace(synonyms=((MARK.name, 1),))
    catalog = CORE.with_plugin(Section("x", broker=(MARK,), topic=(row,)))
    asked = Asked(implied(MARK, lacks="which is off"))
    later(store, asked, settings=Settings(catalog=catalog))
    assert asked.times == 0
    settings = Settings({MARK.name: "m"}, catalog=catalog)
    found = later(store, asked, settings=settings)
    assert asked.times == 1
    assert found.wanted(stored_topic_config(settings, {}), {}).lack


def test_a_plugin_that_can_say_nothing_is_asked_once(store: MetadataStore) -> None:
    asked = Asked()
    found = later(store, asked)
    for _ in range(2):
        found.vet({}, {CHECK.name: "true"})
    assert asked.times == 1
