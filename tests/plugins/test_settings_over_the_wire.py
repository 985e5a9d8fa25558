"""Settings of a plugin as clients see and change them: of topics and of the broker, kept, and told to the plugin."""

from __future__ import annotations

import logging
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.config.setting import ConfigType
from leafcuttr.config.settings import Source
from leafcuttr.embedded import BrokerThread, run_broker
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.alter_configs import AlterableConfig as Replaced
from leafcuttr.wire.messages.alter_configs import AlterConfigsRequest
from leafcuttr.wire.messages.alter_configs import AlterConfigsResource as ReplacedResource
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from leafcuttr.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from leafcuttr.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.acme import SOURCE
from support.forked_start import run_leafcuttr
from support.plugin_folders import install
from support.wire_client import WireClient

P = "lc.plugin.acme."
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
SECRET = "open sesame"
Run = Callable[..., AbstractContextManager[WireClient]]
Outcome = tuple[int, str | None]


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Run:
    """`with run({...}) as client`: a broker with the plugin, always with the same data."""
    install(site, "acme", SOURCE)

    @contextmanager
    def running(settings: Mapping[str, str] | None = None) -> Iterator[WireClient]:
        given = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(tmp_path / "data"),
            "lc.metrics.port": "0",
            **(settings or {}),
        }
        with run_broker(given) as broker, WireClient(broker.bootstrap_servers) as client:
            client.broker = broker  # type: ignore[attr-defined]
            yield client

    return running


def plugin() -> Any:
    """The module of the plugin, as this process has it."""
    return sys.modules["acme_plugin"]


def create(client: WireClient, topic: str, **configs: str) -> Any:
    given = [
        CreatableTopicConfig(name=P + name.replace("__", "."), value=value) for name, value in configs.items()
    ]
    topics = [CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=given)]
    return client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 5).topics[0]


def change(
    client: WireClient, kind: int, name: str, *changes: tuple[int, str, str | None], dry: bool = False
) -> Outcome:
    configs = [
        AlterableConfig(
            name=P + key if not key.startswith("lc.") else key, config_operation=operation, value=value
        )
        for operation, key, value in changes
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    (answer,) = client.ask(
        IncrementalAlterConfigsRequest(resources=[resource], validate_only=dry), 1
    ).responses
    return answer.error_code, answer.error_message


def describe(client: WireClient, kind: int, name: str) -> dict[str, DescribeConfigsResourceResult]:
    """What is described of the plugin's settings and of filters, by what stands behind the prefix."""
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name)],
        include_synonyms=True,
        include_documentation=True,
    )
    (result,) = client.ask(request, 4).results
    assert result.error_code == 0
    assert SECRET not in str(result)
    return {
        each.name.removeprefix(P): each
        for each in result.configs
        if each.name.startswith((P, "lc.filters", "lc.validators"))
    }


def synonyms(config: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(one.name.removeprefix(P), one.value, one.source) for one in config.synonyms]


# Topics


def test_a_topic_is_created_with_them_and_describes_them(run: Run) -> None:
    with run({f"{P}colour": "blue"}) as client:
        made = create(client, "t", limit=" 7", token=SECRET, labels="a,b", map__Key="3")
        assert (made.error_code, made.error_message) == (0, None)
        answered = {one.name.removeprefix(P): one for one in made.configs}
        assert (answered["limit"].value, answered["limit"].config_source) == (
            "7",
            Source.DYNAMIC_TOPIC_CONFIG,
        )
        assert (answered["token"].value, answered["token"].is_sensitive) == (None, True)
        found = describe(client, TOPIC, "t")
        assert {name: each.value for name, each in found.items()} == {
            "lc.filters": "",
            "lc.filters.dead.letter.topic": None,
            "lc.validators": "",
            "colour": "blue",
            "labels": "a,b",
            "limit": "7",
            "token": None,
            "map.Key": "3",
        }
        assert synonyms(found["limit"]) == [("limit", "7", Source.DYNAMIC_TOPIC_CONFIG)]
        assert synonyms(found["token"]) == [("token", None, Source.DYNAMIC_TOPIC_CONFIG)]
        assert synonyms(found["colour"]) == [
            ("colour", "blue", Source.STATIC_BROKER_CONFIG),
            ("colour", "red", Source.DEFAULT_CONFIG),
        ]
        assert found["colour"].config_source == Source.STATIC_BROKER_CONFIG
        assert found["colour"].documentation == "The colour for a topic."
        types = {name: each.config_type for name, each in found.items()}
        assert (
            types["limit"] == ConfigType.LONG
            and types["token"] == ConfigType.PASSWORD
            and types["labels"] == ConfigType.LIST
        )
        assert [name for name, each in found.items() if each.is_sensitive] == ["token"]
        assert not any(each.read_only for each in found.values())


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "limit",
            "many",
            "Invalid value many for configuration lc.plugin.acme.limit: Not a number of type LONG",
        ),
        ("limit", "-1", "Invalid value -1 for configuration lc.plugin.acme.limit: Value must be at least 0"),
        (
            "colour",
            "x",
            "Invalid value x for configuration lc.plugin.acme.colour: String must be one of: red, blue",
        ),
        (
            "token",
            "sesame",
            "Invalid value [hidden] for configuration lc.plugin.acme.token: it is not allowed",
        ),
        ("map.x", "y", "Invalid value y for configuration lc.plugin.acme.map.x: Not a number of type INT"),
        ("colours", "red", "Unknown topic config name: lc.plugin.acme.colours"),
        ("weight", "2", "Unknown topic config name: lc.plugin.acme.weight"),
    ],
)
def test_what_a_topic_does_not_take(run: Run, name: str, value: str, said: str) -> None:
    with run() as client:
        refused = create(client, "t", **{name: value})
        assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_CONFIG, said)
        create(client, "t")
        for dry in (True, False):
            assert change(client, TOPIC, "t", (SET, name, value), dry=dry) == (ErrorCode.INVALID_CONFIG, said)
        sources = {each.config_source for each in describe(client, TOPIC, "t").values()}
        assert sources == {Source.DEFAULT_CONFIG}


def test_lists_grow_and_shrink(run: Run) -> None:
    with run() as client:
        create(client, "t")
        assert change(client, TOPIC, "t", (APPEND, "labels", "b,new,c")) == (0, None)
        assert describe(client, TOPIC, "t")["labels"].value == "new,b,c"
        assert change(client, TOPIC, "t", (SUBTRACT, "labels", "new,b")) == (0, None)
        assert describe(client, TOPIC, "t")["labels"].value == "c"
        assert change(client, TOPIC, "t", (DELETE, "labels", None)) == (0, None)
        assert describe(client, TOPIC, "t")["labels"].value == "new"
        code, said = change(client, TOPIC, "t", (APPEND, "limit", "1"))
        assert (code, said) == (
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key lc.plugin.acme.limit because its type is not LIST.",
        )


def test_old_clients_replace_them_all(run: Run) -> None:
    with run() as client:
        create(client, "t", limit="7", colour="blue")
        configs = [Replaced(name=f"{P}limit", value="8")]
        resource = ReplacedResource(resource_type=TOPIC, resource_name="t", configs=configs)
        (answer,) = client.ask(AlterConfigsRequest(resources=[resource]), 2).responses
        assert answer.error_code == 0
        found = describe(client, TOPIC, "t")
        assert (found["limit"].value, found["colour"].value) == ("8", "red")


def test_what_plugins_see_of_a_topic(run: Run) -> None:
    with run() as client:
        create(client, "t", limit="7", token=SECRET)
        (view,) = plugin().BROKERS
        broker: BrokerThread = client.broker  # type: ignore[attr-defined]

        async def seen(_: object) -> tuple[Any, Any]:
            return view.topics.get("t").overrides, view.topics.configs("t")

        overrides, configs = broker.call(seen)
        assert overrides == {f"{P}limit": "7"}
        assert configs[f"{P}limit"] == "7" and configs[f"{P}colour"] == "red"
        assert SECRET not in str(configs)


def test_they_outlive_the_broker_and_the_plugin(run: Run) -> None:
    with run() as client:
        create(client, "t", limit="7", token=SECRET)
    with run() as client:
        assert describe(client, TOPIC, "t")["limit"].value == "7"
    with run({"lc.plugins.disabled": "acme"}) as client:
        found = describe(client, TOPIC, "t")
        assert {name for name in found if not name.startswith("lc.")} == {"limit", "token"}
        # Nobody knows now what is a secret: all of them are told as one.
        assert (found["limit"].value, found["limit"].is_sensitive, found["limit"].config_type) == (
            None,
            True,
            0,
        )
        assert synonyms(found["limit"]) == [("limit", None, Source.DYNAMIC_TOPIC_CONFIG)]
        assert "no installed plugin has a setting of this name" in found["limit"].documentation
        assert change(client, TOPIC, "t", (SET, "lc.filters.dead.letter.topic", "dead")) == (0, None)
        code, said = change(client, TOPIC, "t", (SET, "limit", "8"))
        assert (code, said) == (ErrorCode.INVALID_CONFIG, "Unknown topic config name: lc.plugin.acme.limit")
        assert create(client, "u", limit="7").error_code == ErrorCode.INVALID_CONFIG
        assert change(client, TOPIC, "t", (DELETE, "token", None)) == (0, None)
    with run() as client:
        found = describe(client, TOPIC, "t")
        assert found["limit"].value == "7"
        assert found["lc.filters.dead.letter.topic"].value == "dead"
        assert synonyms(found["token"]) == []


# The broker


@pytest.mark.parametrize("scope", ["1", ""], ids=["this broker", "all brokers"])
def test_dynamic_ones_change_and_reach_the_plugin(run: Run, scope: str) -> None:
    with run({f"{P}weight": "4"}) as client:
        (view,) = plugin().BROKERS
        assert view.settings.int(f"{P}weight") == 4
        assert view.settings.optional_text(f"{P}secret") is None
        assert change(client, BROKER, scope, (SET, "weight", "6"), (SET, "secret", SECRET)) == (0, None)
        assert change(client, BROKER, scope, (APPEND, "towns", "York"), (SET, "route.York/+", "north")) == (
            0,
            None,
        )
        assert [
            {f"{P}weight", f"{P}secret"},
            {f"{P}towns", f"{P}route.York/+"},
        ] == plugin().CHANGES
        assert view.settings.int(f"{P}weight") == 6
        assert view.settings.text(f"{P}secret") == SECRET
        assert view.settings.list(f"{P}towns") == ("Bath", "Wells", "York")
        assert view.settings.family(f"{P}route.<town>") == {"York/+": "north"}
        found = describe(client, BROKER, "1")
        source = Source.DYNAMIC_BROKER_CONFIG if scope else Source.DYNAMIC_DEFAULT_BROKER_CONFIG
        assert synonyms(found["weight"]) == [
            ("weight", "6", source),
            ("weight", "4", Source.STATIC_BROKER_CONFIG),
            ("weight", "2", Source.DEFAULT_CONFIG),
        ]
        assert (found["secret"].value, found["secret"].is_sensitive, found["secret"].read_only) == (
            None,
            True,
            False,
        )
        assert (found["route.York/+"].value, found["route.York/+"].read_only) == ("north", False)
        assert found["maker"].read_only
        if not scope:
            assert describe(client, BROKER, "").keys() == {"weight", "secret", "towns", "route.York/+"}
    with run() as client:
        assert plugin().BROKERS[-1].settings.text(f"{P}secret") == SECRET
        assert describe(client, BROKER, "1")["weight"].value == "6"
        assert change(client, BROKER, scope, (DELETE, "weight", None)) == (0, None)
        assert plugin().BROKERS[-1].settings.int(f"{P}weight") == 2


@pytest.mark.one_in(2)
@pytest.mark.parametrize("scope", ["1", ""], ids=["this broker", "all brokers"])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("maker", "Other", "Cannot update these configs dynamically: [lc.plugin.acme.maker]"),
        ("weight", "x", "Invalid value x for configuration lc.plugin.acme.weight: Not a number of type INT"),
        ("weight", "5", "Invalid value 5 for configuration lc.plugin.acme.weight: 5 is odd"),
        (
            "secret",
            "sesame",
            "Invalid value [hidden] for configuration lc.plugin.acme.secret: it is not allowed",
        ),
    ],
)
def test_what_does_not_change_while_running(run: Run, scope: str, name: str, value: str, said: str) -> None:
    with run() as client:
        for dry in (True, False):
            outcome = change(client, BROKER, scope, (SET, name, value), dry=dry)
            assert outcome == (ErrorCode.INVALID_REQUEST, said)
        assert plugin().CHANGES == []


def test_a_change_outlives_the_plugin(run: Run) -> None:
    with run() as client:
        assert change(client, BROKER, "1", (SET, "weight", "6"), (SET, "secret", SECRET)) == (0, None)
        assert change(client, BROKER, "", (SET, "weight", "8")) == (0, None)
    with run({"lc.plugins.disabled": "acme"}) as client:
        own, of_all = describe(client, BROKER, "1"), describe(client, BROKER, "")
        assert own.keys() == {"weight", "secret", "lc.filters.dead.letter.topic"} and of_all.keys() == {
            "weight"
        }
        assert all(own[name].is_sensitive and own[name].value is None for name in ("weight", "secret"))
        assert synonyms(own["weight"]) == [
            ("weight", None, Source.DYNAMIC_BROKER_CONFIG),
            ("weight", None, Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ]
        assert change(client, BROKER, "1", (DELETE, "weight", None)) == (0, None)
    with run() as client:
        assert plugin().BROKERS[-1].settings.int(f"{P}weight") == 8
        assert plugin().BROKERS[-1].settings.text(f"{P}secret") == SECRET


def test_a_topic_follows_the_brokers_setting_of_the_same_name(run: Run) -> None:
    with run() as client:
        create(client, "t")
        assert change(client, BROKER, "1", (SET, "colour", "blue")) == (0, None)
        found = describe(client, TOPIC, "t")
        assert (found["colour"].value, found["colour"].config_source) == (
            "blue",
            Source.DYNAMIC_BROKER_CONFIG,
        )


def test_what_the_broker_gives_to_topics_by_pattern_is_shown_as_theirs(run: Run) -> None:
    with run({"lc.filters.orders-*": "one", "lc.validators.other": "two"}) as client:
        create(client, "orders-eu")
        found = describe(client, TOPIC, "orders-eu")
        assert (found["lc.filters"].value, found["lc.filters"].config_source) == (
            "one",
            Source.STATIC_BROKER_CONFIG,
        )
        assert synonyms(found["lc.filters"]) == [("lc.filters.orders-*", "one", Source.STATIC_BROKER_CONFIG)]
        assert (found["lc.validators"].value, found["lc.validators"].config_source) == (
            "",
            Source.DEFAULT_CONFIG,
        )
        assert describe(client, BROKER, "1")["lc.filters.orders-*"].value == "one"
        assert change(client, TOPIC, "orders-eu", (SUBTRACT, "lc.filters", "one")) == (0, None)
        assert describe(client, TOPIC, "orders-eu")["lc.filters"].config_source == Source.DYNAMIC_TOPIC_CONFIG
        assert change(client, BROKER, "1", (SET, "lc.filters.orders-*", "")) == (0, None)
        assert (
            describe(client, BROKER, "1")["lc.filters.orders-*"].config_source == Source.DYNAMIC_BROKER_CONFIG
        )


def test_two_brokers_of_one_process_have_their_own(run: Run, tmp_path: Path) -> None:
    other = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path / "other"),
        "lc.metrics.port": "0",
        "lc.plugins.disabled": "acme",
    }
    with run() as client, run_broker(other) as broker, WireClient(broker.bootstrap_servers) as without:
        assert "weight" in describe(client, BROKER, "1")
        assert "weight" not in describe(without, BROKER, "1")
        assert create(client, "t", limit="7").error_code == 0
        assert create(without, "t", limit="7").error_code == ErrorCode.INVALID_CONFIG


# Secrets


def test_our_commands_say_that_a_secret_is_hidden(run: Run) -> None:
    with run() as client:
        assert create(client, "t", token=SECRET).error_code == 0
        for words in ("topics describe t", "configs describe topic t"):
            address = client.broker.bootstrap_servers  # type: ignore[attr-defined]
            done = run_leafcuttr((*words.split(), "-b", address))
            assert done.returncode == 0
            assert f"{P}token" in done.stdout and "(hidden)" in done.stdout
            assert SECRET not in done.stdout + done.stderr


def test_a_secret_is_in_no_answer(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), run({f"{P}secret": SECRET, f"{P}ghost": SECRET}) as client:
        broker: BrokerThread = client.broker  # type: ignore[attr-defined]
        create(client, "t", token=SECRET)
        change(client, BROKER, "1", (SET, "secret", SECRET + "!"))
        change(client, BROKER, "1", (SET, "secret", SECRET))
        for kind, name in ((BROKER, "1"), (BROKER, ""), (TOPIC, "t")):
            describe(client, kind, name)
        for path in ("/health", "/metrics"):
            with urllib.request.urlopen(f"http://{broker.metrics_address}{path}", timeout=60) as answer:
                body = answer.read().decode()
            assert answer.status == 200 and SECRET not in body
    assert caplog.text
    assert SECRET not in caplog.text
