"""Settings that plugins declare: what may be declared, how it joins the catalogue, and what is said of the others."""

import logging
from pathlib import Path

import pytest

from leafcuttr.config.catalog import BROKER, CORE, TOPIC, Catalog
from leafcuttr.config.declared import section
from leafcuttr.config.load import examine, load_settings
from leafcuttr.config.setting import ConfigType as Kind
from leafcuttr.config.settings import Settings
from leafcuttr.config.topic import stored_topic_config, topic_config
from leafcuttr.errors import ConfigError, InvalidConfig
from leafcuttr_sdk.plugin import Plugin
from leafcuttr_sdk.settings import Setting, Type, Value, listener_settings

ACME = Plugin("acme", 1, "Anvils", enabled_by="lc.plugin.acme.enable")
SWITCH = Setting("lc.plugin.acme.enable", Type.BOOLEAN, False, "Switches it on.")
WEIGHT = Setting("lc.plugin.acme.weight", Type.INT, 3, "How heavy.", unit="kg", minimum=1, dynamic=True)
SECRET = Setting("lc.plugin.acme.secret", Type.PASSWORD, None, "Whispered.")
ROUTES = Setting("lc.plugin.acme.route.<town>", Type.STRING, None, "Where to.")
COLOUR = Setting("lc.plugin.acme.colour", Type.STRING, "red", "Its colour.", choices=("red", "blue"))


def catalog(
    *settings: Setting, topic: tuple[Setting, ...] = (), plugin: Plugin = ACME, bundled: bool = False
) -> Catalog:
    return CORE.with_plugin(section(plugin, (SWITCH, *settings), topic, bundled=bundled))


def refusal(*settings: Setting, plugin: Plugin = ACME, topic: tuple[Setting, ...] = ()) -> str:
    with pytest.raises(ConfigError) as caught:
        catalog(*settings, plugin=plugin, topic=topic)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Declaring


def test_a_declared_setting_is_a_row_like_the_cores() -> None:
    row = catalog(WEIGHT).broker["lc.plugin.acme.weight"]
    assert (row.type, row.default, row.unit, row.minimum, row.dynamic) == (Kind.INT, 3, "kg", 1, True)


def test_a_whole_number_is_a_number() -> None:
    share = Setting("lc.plugin.acme.share", Type.DOUBLE, 1, "A share.", maximum=1)
    assert Settings({}, catalog(share)).float(share.name) == 1.0


def test_the_cores_tables_stay_as_they_are() -> None:
    names = list(BROKER), list(TOPIC)
    assert catalog(WEIGHT, topic=(COLOUR,)).topic.keys() - TOPIC.keys() == {COLOUR.name}
    assert (list(BROKER), list(TOPIC)) == names
    assert Settings().catalog is CORE


def named(name: str) -> Setting:
    return SWITCH._replace(name=name)


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        (named("lc.plugin.other.x"), "its name has to begin with lc.plugin.acme."),
        (named("lc.plugin.acme.Upper"), "lower-case letters"),
        (named("lc.plugin.acme.<x>.y"), "lower-case letters"),
        (named("lc.plugin.acme."), "lower-case letters"),
        (SWITCH, "it is declared twice"),
        (WEIGHT._replace(default="3"), "the default '3' is not of type int"),
        (WEIGHT._replace(default=True), "the default True is not of type int"),
        (WEIGHT._replace(default=None), "the default of type int cannot be None"),
        (WEIGHT._replace(default=0), "its default is not allowed: Value must be at least 1"),
        (COLOUR._replace(default="green"), "its default is not allowed: String must be one of: red, blue"),
        (SECRET._replace(default="x"), "a password has no default: it would be known to everybody"),
        (ROUTES._replace(default="x"), "a family has no default"),
        (COLOUR._replace(check_member=lambda *_: None), "check_member is for a family"),
        (
            COLOUR._replace(check_with_others=lambda *_: None, dynamic=True),
            "check_with_others is called at the start: it is not for a dynamic setting",
        ),
        (
            COLOUR._replace(check_file=lambda *_: (), dynamic=True),
            "check_file is called at the start: it is not for a dynamic setting",
        ),
    ],
)
def test_what_cannot_be_declared(setting: Setting, why: str) -> None:
    line = refusal(setting)
    assert why in line
    assert line.startswith(f"its setting {setting.name}: ")


def test_an_enabling_setting_is_a_boolean_or_a_text_of_its_own() -> None:
    line = refusal(WEIGHT, plugin=ACME._replace(enabled_by=WEIGHT.name))
    assert (
        line
        == "enabled_by is lc.plugin.acme.weight, which is neither a boolean nor a text setting of its own"
    )
    text = COLOUR._replace(default=None, choices=())
    assert section(ACME._replace(enabled_by=text.name), (text,), (), bundled=False).enabled_by == text.name
    assert refusal(COLOUR, plugin=ACME._replace(enabled_by=COLOUR.name)) == (
        "enabled_by is lc.plugin.acme.colour, which has a default: it would always be on"
    )
    number = SWITCH._replace(name=f"{SWITCH.name}.now", dynamic=True)
    assert refusal(number, plugin=ACME._replace(enabled_by=number.name)) == (
        "enabled_by is lc.plugin.acme.enable.now, which acts at the start only: it cannot be dynamic"
    )
    assert "neither a boolean" in refusal(plugin=ACME._replace(enabled_by="auto.create.topics.enable"))


def test_a_name_belongs_to_one() -> None:
    bundled = section(ACME._replace(enabled_by=None), (named("num.partitions"),), (), bundled=True)
    with pytest.raises(ConfigError, match=r"^its setting num.partitions is one of the broker itself$"):
        CORE.with_plugin(bundled)
    of_topics = section(ACME._replace(enabled_by=None), (), (named("retention.ms"),), bundled=True)
    with pytest.raises(ConfigError, match=r"^its topic setting retention.ms is one of the broker itself$"):
        CORE.with_plugin(of_topics)
    second = section(Plugin("other", 1, ""), (WEIGHT, ROUTES), (), bundled=True)
    with pytest.raises(ConfigError, match=r"^its setting lc.plugin.acme.weight is one of plugin acme$"):
        catalog(WEIGHT).with_plugin(second)
    with pytest.raises(ConfigError, match=r"route.<town> is one of plugin acme$"):
        catalog(ROUTES).with_plugin(second)


def test_a_topic_has_the_value_of_the_brokers_setting_of_that_name() -> None:
    settings = Settings({COLOUR.name: "blue"}, catalog(COLOUR, topic=(COLOUR,)))
    assert topic_config(settings).extra == {COLOUR.name: "blue"}
    assert topic_config(settings, {COLOUR.name: "red"}).extra == {COLOUR.name: "red"}
    number = Setting(COLOUR.name, Type.INT, 1, "A number.")
    assert refusal(COLOUR, topic=(number,)) == (
        "its setting lc.plugin.acme.colour is of type string for the broker, but of type int for topics"
    )


# Values


def test_the_values_come_from_all_sources_and_are_checked_alike(tmp_path: Path) -> None:
    def find(_: Settings) -> Catalog:
        return catalog(WEIGHT, SECRET, COLOUR)

    file = tmp_path / "server.properties"
    file.write_text("lc.plugin.acme.weight=5\nlc.plugin.acme.colour=blue\n")
    environ = {"KAFKA_LC_PLUGIN_ACME_WEIGHT": "6", "KAFKA_LC_PLUGIN_ACME_ENABLE": "true"}
    settings, warnings = load_settings(file, environ, (), find)
    assert warnings == []
    assert settings.int("lc.plugin.acme.weight") == 6
    assert settings.bool("lc.plugin.acme.enable")
    assert settings.text("lc.plugin.acme.colour") == "blue"
    assert settings.where("lc.plugin.acme.colour") == "server.properties:2"
    assert load_settings(file, environ, ["lc.plugin.acme.weight=7"], find)[0].int(WEIGHT.name) == 7
    with pytest.raises(ConfigError) as caught:
        load_settings(None, {"KAFKA_LC_PLUGIN_ACME_WEIGHT": "0"}, (), find)
    assert str(caught.value) == (
        "lc.plugin.acme.weight=0 (KAFKA_LC_PLUGIN_ACME_WEIGHT): allowed is a whole number, at least 1"
    )
    with pytest.raises(
        ConfigError, match=r"^lc.plugin.acme.colour=green \(-o\): allowed is one of red, blue$"
    ):
        load_settings(None, {}, ["lc.plugin.acme.colour=green"], find)


def test_bundled_listeners_are_found_in_the_environment() -> None:
    http = Plugin("http", 1, "", enabled_by="lc.http.proxy.enable")
    switch = named("lc.http.proxy.enable")
    rows = section(http, (switch, *listener_settings("lc.http.proxy", 8080)), (), bundled=True)
    environ = {
        "KAFKA_LC_HTTP_PROXY_PORT": "8081",
        "KAFKA_LC_HTTP_PROXY_SSL_CLIENT_AUTH": "required",
        "KAFKA_LC_HTTP_PROXY_SSL_KEY_PASSWORD": "hunter2",
    }
    settings, warnings = load_settings(None, environ, (), lambda _: CORE.with_plugin(rows))
    assert warnings == []
    assert settings.int("lc.http.proxy.port") == 8081
    assert settings.text("lc.http.proxy.ssl.client.auth") == "required"
    assert settings.text("lc.http.proxy.ssl.key.password") == "hunter2"
    assert settings.optional_text("lc.http.proxy.host") is None
    with pytest.raises(ConfigError, match=r"JKS \(-o\): allowed is one of PEM"):
        load_settings(None, {}, ["lc.http.proxy.ssl.keystore.type=JKS"], lambda _: CORE.with_plugin(rows))


@pytest.mark.setting("lc.plugins.disabled", "lc.plugins.path", "lc.plugins.strict")
def test_settings_about_plugins_are_read_before_plugins_are_found() -> None:
    seen: list[Settings] = []

    def find(settings: Settings) -> Catalog:
        seen.append(settings)
        return catalog(WEIGHT)

    environ = {"KAFKA_LC_PLUGINS_DISABLED": "a, b", "KAFKA_LC_PLUGINS_STRICT": "true"}
    given = ["lc.plugins.path=/p", "lc.plugin.acme.weight=9", "num.partitions=3"]
    settings, _ = load_settings(None, environ, given, find)
    (early,) = seen
    assert early.list("lc.plugins.disabled") == ("a", "b")
    assert early.bool("lc.plugins.strict")
    assert early.value("lc.plugins.path") == "/p"
    assert early.where("lc.plugins.path") == "-o"
    assert early.int("num.partitions") == 1, "only what is about plugins has been read"
    assert settings.int("lc.plugin.acme.weight") == 9
    assert settings.list("lc.plugins.disabled") == ("a", "b")


def test_all_mistakes_are_found_at_once() -> None:
    given = ["lc.plugins.strict=perhaps", "lc.plugin.acme.weight=x", "lc.plugin.acme.wight=1"]
    settings, findings = examine(None, {}, given, lambda _: catalog(WEIGHT))
    assert [finding.line for finding in findings] == [
        "lc.plugins.strict=perhaps (-o): allowed is true or false",
        "lc.plugin.acme.weight=x (-o): allowed is a whole number, at least 1",
        "lc.plugin.acme.wight (-o) is not a known setting and has no effect; did you mean lc.plugin.acme.weight?",
    ]
    assert settings.int("lc.plugin.acme.weight") == 3


def test_settings_of_plugins_that_are_not_there_are_said() -> None:
    def find(_: Settings) -> Catalog:
        return CORE.without_plugin("http", "it is left out: lc.plugins.disabled names it")

    given = ["lc.plugin.ghost.x=secret", "lc.http.proxy.port=1"]
    assert load_settings(None, {}, given, find)[1] == [
        "lc.plugin.ghost.x (-o) has no effect: no plugin ghost is installed",
        "lc.http.proxy.port (-o) has no effect: it is a setting of the plugin http; it is left out: "
        "lc.plugins.disabled names it",
    ]
    assert "secret" not in str(examine(None, {}, given, find)[1])


# Checks of the plugin's own


def test_a_check_has_the_last_word() -> None:
    def even(value: Value) -> str | None:
        return None if isinstance(value, int) and value % 2 == 0 else f"{{{value}}} is odd"

    rows = catalog(WEIGHT._replace(default=2, check=even))
    assert Settings({WEIGHT.name: "4"}, rows).int(WEIGHT.name) == 4
    with pytest.raises(ConfigError, match=r"weight=5 \(-o\): \{5\} is odd$"):
        Settings({WEIGHT.name: "5"}, rows)
    with pytest.raises(ConfigError, match=r"Value must be at least 1$"):
        Settings({WEIGHT.name: "0"}, rows)


def test_a_check_that_breaks_refuses_and_a_secret_stays_one() -> None:
    def breaks(value: Value) -> str | None:
        raise KeyError(value)

    def tells(value: Value) -> str | None:
        return None if value is None else f"{value} is weak"

    def leaves(value: Value) -> str | None:
        raise SystemExit("two\nlines")

    for check, kind, said in (
        (leaves, Type.STRING, "its check failed with SystemExit: two"),
        (breaks, Type.STRING, "its check failed with KeyError: 'open sesame'"),
        (breaks, Type.PASSWORD, "it is not allowed"),
        (tells, Type.PASSWORD, "it is not allowed"),
    ):
        rows = catalog(Setting("lc.plugin.acme.word", kind, None, "A word.", check=check))
        with pytest.raises(ConfigError) as caught:
            Settings({"lc.plugin.acme.word": "open sesame"}, rows)
        assert str(caught.value).endswith(said)
        assert kind is Type.STRING or "sesame" not in str(caught.value)


def test_a_check_that_breaks_is_a_line_of_the_log_and_its_repeats_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def breaks(*values: Value) -> str:
        raise KeyError(values[-1])

    weight = WEIGHT._replace(check=breaks, default=None, type=Type.STRING, minimum=None)
    secret = SECRET._replace(check=breaks)
    routes = ROUTES._replace(check_member=breaks)
    found = catalog(weight, secret, routes)
    for name, value in ((weight.name, "12"), (secret.name, "sesame"), ("lc.plugin.acme.route.york", "a1")):
        for _ in range(3):
            with pytest.raises(ConfigError):
                load_settings(None, {}, [f"{name}={value}"], lambda _: found)
    lines = [line.partition(" (")[0] for line in caplog.messages]
    assert lines == [
        "plugin acme: check of lc.plugin.acme.weight failed: KeyError: '12'",
        "plugin acme: check of lc.plugin.acme.secret failed: KeyError",
        "plugin acme: check of lc.plugin.acme.route.<town> failed: KeyError: 'a1'",
    ]


def test_a_command_without_a_log_says_nothing_more(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(value: Value) -> str:
        raise KeyError(value)

    monkeypatch.setattr(logging.getLogger("leafcuttr.plugins"), "hasHandlers", lambda: False)
    found = catalog(SECRET._replace(check=breaks))
    with pytest.raises(ConfigError):
        load_settings(None, {}, [f"{SECRET.name}=sesame"], lambda _: found)
    assert not caplog.messages


# Families


def test_members_of_a_family() -> None:
    settings = Settings(
        {"lc.plugin.acme.route.Bath/+": "a", "lc.plugin.acme.route.x.y": "b"}, catalog(ROUTES)
    )
    assert settings.family(ROUTES.name) == {"Bath/+": "a", "x.y": "b"}
    assert settings.value("lc.plugin.acme.route.x.y") == "b"
    assert not settings.extra
    assert Settings({}, catalog(ROUTES)).family(ROUTES.name) == {}


def test_a_member_of_a_family_is_not_empty() -> None:
    given = {"lc.plugin.acme.route.": "c"}
    with pytest.raises(
        ConfigError,
        match=r"^lc.plugin.acme.route.=c \(-o\): after lc.plugin.acme.route. there has to be something, in the place "
        r"of <town>$",
    ):
        Settings(given, catalog(ROUTES))
    # While running it is a name that no table knows, as any other: Kafka takes and keeps those.
    settings = Settings({}, catalog(ROUTES._replace(dynamic=True)))
    settings.replace_dynamic(given)
    assert settings.family(ROUTES.name) == {}
    assert settings.unknown == given
    wide = Setting("lc.plugin.acme.<thing>", Type.STRING, None, "Anything.")
    assert Settings(given, catalog(ROUTES, wide)).family(wide.name) == {"route.": "c"}


def test_the_longer_beginning_counts_and_a_plain_name_before_it() -> None:
    wide = Setting("lc.plugin.acme.<thing>", Type.STRING, None, "Anything.")
    given = {"lc.plugin.acme.route.a": "1", "lc.plugin.acme.b": "2", "lc.plugin.acme.weight": "3"}
    settings = Settings(given, catalog(WEIGHT, ROUTES, wide))
    assert settings.family(ROUTES.name) == {"a": "1"}
    assert settings.family(wide.name) == {"b": "2"}


def test_members_change_while_running() -> None:
    settings = Settings({"lc.plugin.acme.route.a": "1"}, catalog(ROUTES._replace(dynamic=True)))
    changes: list[frozenset[str]] = []
    settings.on_change(changes.append)
    settings.replace_dynamic({"lc.plugin.acme.route.a": "2", "lc.plugin.acme.route.b": "3"})
    assert settings.family(ROUTES.name) == {"a": "2", "b": "3"}
    settings.replace_dynamic({}, cluster=False)
    assert settings.family(ROUTES.name) == {"a": "1"}
    assert changes == [
        {"lc.plugin.acme.route.a", "lc.plugin.acme.route.b"},
        {"lc.plugin.acme.route.a", "lc.plugin.acme.route.b"},
    ]


# Topics


def test_a_topics_values_of_plugins() -> None:
    settings = Settings({}, catalog(topic=(COLOUR, ROUTES)))
    assert topic_config(settings).extra == {COLOUR.name: "red"}
    assert topic_config(settings).extra is topic_config(settings).extra
    config = topic_config(settings, {COLOUR.name: "blue", "lc.plugin.acme.route.x": "y", "retention.ms": "5"})
    assert config.extra == {COLOUR.name: "blue", "lc.plugin.acme.route.x": "y"}
    assert config.retention_ms == 5
    with pytest.raises(InvalidConfig, match=r"value green for configuration lc\.plugin\.acme\.colour"):
        topic_config(settings, {COLOUR.name: "green"})


def test_without_plugins_nothing_is_made_for_a_topic() -> None:
    assert topic_config(Settings()).extra is topic_config(Settings(), {"retention.ms": "5"}).extra


def test_what_a_topic_has_of_a_plugin_that_is_gone_is_kept() -> None:
    settings, stored = Settings(), {COLOUR.name: "blue"}
    assert stored_topic_config(settings, stored).extra == {}
    assert topic_config(settings, {**stored, "retention.ms": "5"}, kept=stored).retention_ms == 5
    for changed in ({COLOUR.name: "red"}, {**stored, "lc.plugin.acme.more": "1"}):
        with pytest.raises(InvalidConfig, match="Unknown topic config name"):
            topic_config(settings, changed, kept=stored)


# What the broker gives to topics by name


def test_a_name_comes_before_patterns_and_a_longer_pattern_before_a_shorter() -> None:
    settings = Settings(
        {
            "lc.filters.*": "all",
            "lc.filters.orders-*": "few",
            "lc.filters.orders-??": "fewer",
            "lc.filters.orders-eu": "one,two",
            "lc.filters.__consumer_offsets": "own",
            "lc.validators.orders-*": "strict",
            "lc.filters.dead.letter.topic": "dead",
        }
    )
    for topic, filters, validators in (
        ("orders-eu", ("one", "two"), ("strict",)),
        ("orders-us", ("fewer",), ("strict",)),
        ("orders-asia", ("few",), ("strict",)),
        ("other", ("all",), ()),
        ("__consumer_offsets", ("own",), ()),
        ("__transaction_state", (), ()),
    ):
        config = topic_config(settings, topic=topic)
        assert (config.lc_filters, config.lc_validators) == (filters, validators), topic
        assert config.lc_filters_dead_letter_topic == "dead"
        assert stored_topic_config(settings, {}, topic) == config
    assert topic_config(settings, {"lc.filters": ""}, topic="orders-eu").lc_filters == ()
    assert topic_config(settings, {"lc.filters": "x"}, topic="orders-eu").lc_validators == ("strict",)
    assert settings.given_to_topic("orders-us") == {
        "lc.filters": "lc.filters.orders-??",
        "lc.validators": "lc.validators.orders-*",
    }


def test_topics_follow_when_patterns_change() -> None:
    settings = Settings({"lc.filters.a*": "x"})
    before = settings.of_topics
    settings.replace_dynamic({"log.retention.ms": "5"})
    assert settings.of_topics is before
    settings.replace_dynamic({"lc.filters.a*": "y"}, cluster=True)
    assert settings.of_topics == {"lc.filters": {"a*": ("y",)}}
    assert topic_config(settings, topic="abc").lc_filters == ("y",)
