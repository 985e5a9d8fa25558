"""kaf-relay's configuration: its own sample as it is, every key, every fault in one line."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_forward.relay.files import Given, read_files
from leafcuttr_forward.relay.keys import KEYS, Kind
from leafcuttr_forward.relay.plan import (
    FilterPlan,
    RelayFaultsError,
    RelayPlan,
    RetryPlan,
    TopicPair,
    parse_address,
    parse_topic,
)
from leafcuttr_forward.relay.planning import make_plan
from leafcuttr_sdk.errors import PluginError

SAMPLE = Path(__file__).with_name("kaf-relay.toml")
LEAST = """
[topics]
orders = "orders_copy"
[[sources]]
servers = ["one:9092"]
[target]
servers = ["hub:9092"]
"""


@pytest.fixture
def plan_of(tmp_path: Path) -> Any:
    def make(*texts: str, **options: Any) -> RelayPlan:
        paths = []
        for number, text in enumerate(texts, 1):
            path = tmp_path / f"{number}.toml"
            path.write_text(text, encoding="utf-8")
            paths.append(str(path))
        return make_plan(read_files(paths), **options)

    return make


@pytest.fixture
def faults_of(plan_of: Any, tmp_path: Path) -> Any:
    def faults(*texts: str, **options: Any) -> list[str]:
        with pytest.raises(RelayFaultsError) as caught:
            plan_of(*texts, **options)
        return [each.replace(f"{tmp_path}/", "") for each in caught.value.faults]

    return faults


def test_the_sample_as_it_is() -> None:
    plan = make_plan(read_files([str(SAMPLE)]))
    assert (plan.mode, plan.stop_at_end, plan.log_level) == ("single", False, "debug")
    assert plan.metrics_address == (None, 7081)
    assert plan.topics == (TopicPair("orders", "orders_copy", 1), TopicPair("payments", "payments_copy"))
    assert (plan.pool.interval_s, plan.pool.lag_threshold, plan.pool.request_timeout_s) == (3.0, 1000, 0.1)
    assert not plan.pool.randomize
    assert plan.pool.backoff == plan.target_backoff == RetryPlan(-1, True, 2.0, 10.0)
    assert [each.name for each in plan.sources] == ["node1", "node2"]
    assert plan.sources[0].servers == ("127.0.0.1:9092",)
    assert plan.sources[0].auth == ("PLAIN", "reader", "secret")
    assert plan.sources[0].session_timeout_s == 6.0
    assert plan.sources[1].auth is None
    assert plan.target.auth == ("SCRAM-SHA-256", "writer", "secret")
    assert plan.filters == (
        FilterPlan("test", "test.bin", '{"address": ["127.0.0.1:6379"], "db": 10}\n', False),
    )
    assert plan.max_failovers == -1
    assert plan.notes == (
        f"{SAMPLE}: target.max_message_bytes has no effect: the target's own `max.message.bytes` is what counts.",
    )


def test_the_sample_has_every_key() -> None:
    tree = read_files([str(SAMPLE)])
    missing = [
        f"{key.section}.{key.name}"
        for key in KEYS
        if key.section in ("app", "source_pool", "target") and key.name not in tree[key.section]
    ]
    assert missing == ["target.compression"]  # kaf-relay reads it, and its sample lacks it


def test_a_password_is_in_no_text_of_the_plan() -> None:
    assert "secret" not in repr(make_plan(read_files([str(SAMPLE)])))


def test_what_a_plan_is_without_all_that_may_be_left_out(plan_of: Any) -> None:
    plan = plan_of(LEAST)
    assert plan.metrics_address == (None, 7081)
    assert plan.log_level == "info"
    assert plan.pool.backoff == RetryPlan(-1, False, 1.0, 10.0)
    assert plan.sources[0].name == "one:9092"
    assert not plan.sources[0].tls
    assert plan.notes == ()


def test_the_default_of_every_key_is_one_of_its_values(plan_of: Any) -> None:
    for key in KEYS:
        if key.section == "app" and key.default:
            assert plan_of(LEAST + f'[app]\n{key.name} = "{key.default}"\n') == plan_of(LEAST)


# Topics


def test_lists_of_tables_of_topics_are_one_table(plan_of: Any) -> None:
    text = LEAST.replace("[topics]", '[[topics]]\nb = "c:0"\n[[topics]]')
    assert plan_of(text).topics == (TopicPair("b", "c", 0), TopicPair("orders", "orders_copy"))


def test_a_topic_with_dots_needs_no_quotes(plan_of: Any) -> None:
    text = LEAST.replace("[topics]", '[topics]\nshop.orders.v1 = "a"\n"shop.orders.v2" = "b"')
    assert plan_of(text).topics[:2] == (TopicPair("shop.orders.v1", "a"), TopicPair("shop.orders.v2", "b"))


def test_a_topic_of_the_command_line_goes_before_that_of_a_file(plan_of: Any) -> None:
    plan = plan_of(LEAST, topics=["orders:other:3", "b:c"])
    assert plan.topics == (TopicPair("orders", "other", 3), TopicPair("b", "c"))


@pytest.mark.parametrize(
    "text",
    [
        "orders",
        "orders:",
        ":a",
        "a:b:c",
        "a:b:-1",
        "a:b:1:2",
        "a:b:",
        "a:b:99999999999",
        "a b:c",
        "a:..",
        f"a:{'b' * 250}",
        f"a:b:{'9' * 5000}",
    ],
)
def test_what_is_no_topic(text: str, faults_of: Any) -> None:
    with pytest.raises(ValueError):
        parse_topic(text)
    assert faults_of(LEAST, topics=[text])[0].startswith(f"--topic {text}: ")


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (
            '"a:x"',
            "1.toml: topics.orders = \"a:x\": 'x' is no partition; allowed is TARGET or TARGET:PARTITION",
        ),
        (
            '":1"',
            '1.toml: topics.orders = ":1": the target topic is missing; allowed is TARGET or TARGET:PARTITION',
        ),
        ("3", "1.toml: topics.orders = 3: allowed is a text, the target topic"),
        (
            '"a/../b"',
            "1.toml: topics.orders = \"a/../b\": 'a/../b' is no name of a topic: it has 1 to 249 letters, digits, "
            "'.', '_' and '-', and is not . or ..; allowed is TARGET or TARGET:PARTITION",
        ),
    ],
)
def test_a_wrong_target(value: str, fault: str, faults_of: Any) -> None:
    assert faults_of(LEAST.replace('"orders_copy"', value)) == [fault]


NAMES = st.sampled_from(
    ["a", "", "x\ny", "servers", "name", "max_retries", "request_timeout", "mode", "topics", "username"]
) | st.text(max_size=5)
VALUES = st.recursive(
    st.none().map(lambda _: "b")
    | st.text(max_size=8)
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | st.just("1\n2")
    | st.just("x" * 300),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
SECTION = st.dictionaries(NAMES, VALUES, max_size=4)
WHOLE = st.fixed_dictionaries(
    {"topics": SECTION | st.just({"a": "b"}), "sources": st.lists(SECTION, max_size=2), "target": SECTION},
    optional={"app": SECTION, "source_pool": SECTION, "filters": SECTION, "x\ny": VALUES, "mode": VALUES},
)


def tree_of(found: dict[str, Any]) -> Any:
    """As `read_files` makes it."""
    return {
        name: tree_of(value) if isinstance(value, dict) else Given(value, "1.toml")
        for name, value in found.items()
    }


@given(WHOLE)
def test_any_file_is_read_or_refused_in_lines(found: dict[str, Any]) -> None:
    try:
        lines = make_plan(tree_of(found)).notes
    except RelayFaultsError as error:
        lines = error.faults
    assert all(line.isprintable() for line in lines)


# Merging


def test_a_later_file_wins_key_by_key(plan_of: Any) -> None:
    plan = plan_of(
        LEAST, '[topics]\nb = "c"\n[app]\nlog_level = "warn"\n', '[app]\nmetrics_server_addr = "[::1]:99"\n'
    )
    assert plan.topics == (TopicPair("orders", "orders_copy"), TopicPair("b", "c"))
    assert (plan.log_level, plan.metrics_address) == ("warn", ("::1", 99))


def test_a_later_list_takes_the_place_of_an_earlier_one(plan_of: Any) -> None:
    plan = plan_of(LEAST, '[[sources]]\nname = "b"\nservers = ["two:1"]\n[[topics]]\nx = "y"\n')
    assert [each.name for each in plan.sources] == ["b"]
    assert plan.topics == (TopicPair("x", "y"),)


def test_options_go_before_files(plan_of: Any) -> None:
    text = 'mode = "failover"\nstop-at-end = true\n' + LEAST
    plan = plan_of(text, mode="single")
    assert (plan.mode, plan.stop_at_end) == ("single", True)
    assert plan_of(text, stop_at_end=False).mode == "failover"


# Faults


def test_a_fault_names_file_key_value_and_what_is_allowed(faults_of: Any) -> None:
    assert faults_of(
        LEAST, '[source_pool]\nhealthcheck_interval = "3"\nmax_retries = -2\nrandomize_initial = 1\n'
    ) == [
        '2.toml: source_pool.healthcheck_interval = "3": allowed is a duration such as 300ms, 2s or 1m30s',
        "2.toml: source_pool.max_retries = -2: allowed is a whole number from -1 on",
        "2.toml: source_pool.randomize_initial = 1: allowed is true or false",
    ]


def test_a_fault_of_a_source_names_it(faults_of: Any) -> None:
    text = LEAST.replace(
        "[[sources]]", '[[sources]]\nname = "node1"\nservers = ["a:b"]\n[[sources]]\nsession_timeout = 6'
    )
    assert faults_of(text) == [
        "1.toml: sources[node1].servers = ['a:b']: 'a:b' is no address: write HOST:PORT",
        "1.toml: sources[2].session_timeout = 6: allowed is a duration such as 300ms, 2s or 1m30s",
    ]


def test_what_has_to_be_there(faults_of: Any) -> None:
    assert faults_of("") == [
        "there are no topics: write [topics], or give --topic SOURCE:TARGET",
        "there is no [[sources]]",
        "there is no [target]",
    ]
    assert faults_of('[topics]\na = "b"\n[[sources]]\nname = "x"\n[target]\nname = "y"\nservers = []\n') == [
        "1.toml: sources[x].servers is missing: allowed is a list of host:port",
        "1.toml: target.servers = []: allowed is a list of host:port, one at least",
    ]


def test_authentication_needs_a_mechanism_that_there_is(faults_of: Any) -> None:
    assert faults_of(LEAST + "enable_auth = true\n") == [
        "1.toml: target.sasl_mechanism is missing, with enable_auth = true: allowed is PLAIN, SCRAM-SHA-256 or "
        "SCRAM-SHA-512",
        "1.toml: target.username is missing, with enable_auth = true: allowed is a text",
    ]
    assert faults_of(LEAST + 'sasl_mechanism = "GSSAPI"\n') == [
        '1.toml: target.sasl_mechanism = "GSSAPI": allowed is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, ""'
    ]


def test_a_password_is_not_shown(faults_of: Any) -> None:
    assert faults_of(LEAST + "password = 12345\n") == ["1.toml: target.password = ...: allowed is a text"]


def test_a_certificate_needs_its_key(faults_of: Any) -> None:
    assert faults_of(LEAST + 'enable_tls = true\nclient_key_path = "k.pem"\n') == [
        "1.toml: target: of client_cert_path and client_key_path one is missing; allowed are both or none"
    ]


def test_pauses_that_are_none(faults_of: Any) -> None:
    assert faults_of(LEAST + 'backoff_enable = true\nbackoff_min = "11s"\n') == [
        '1.toml: target.backoff_min = "11s": allowed is a duration above 0 and up to backoff_max (10s)'
    ]
    assert faults_of(LEAST + '[source_pool]\nrequest_timeout = "0s"\n') == [
        '1.toml: source_pool.request_timeout = "0s": allowed is a duration above 0'
    ]


def test_two_sources_of_one_name(faults_of: Any) -> None:
    text = LEAST.replace("[[sources]]", '[[sources]]\nservers = ["one:9092"]\n[[sources]]')
    assert faults_of(text) == ["1.toml: two sources have the name one:9092"]


def test_an_address_of_metrics(faults_of: Any, plan_of: Any) -> None:
    assert faults_of(LEAST + '[app]\nmetrics_server_addr = "here"\n') == [
        '1.toml: app.metrics_server_addr = "here": write HOST:PORT, or :PORT'
    ]
    assert plan_of(LEAST + '[app]\nmetrics_server_addr = ""\n').metrics_address is None


def test_no_end_with_failover(faults_of: Any) -> None:
    assert faults_of(LEAST, mode="failover", stop_at_end=True) == [
        "--stop-at-end cannot be used with --mode failover: a source that is behind has no end"
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("topics = 3\n", "1.toml: topics = 3: allowed is a table, [topics]"),
        ("app = 3\n", "1.toml: app = 3: allowed is a table, [app]"),
        ("sources = [3]\n", "1.toml: sources = [3]: allowed are tables, [[sources]]"),
        ("[filters]\ntest = 3\n", "1.toml: filters.test = 3: allowed is a table, [filters.test]"),
        ("[target.name]\nx = 1\n", "1.toml: target.name = a table: allowed is a text"),
    ],
)
def test_what_is_no_table(text: str, fault: str, faults_of: Any) -> None:
    assert fault in faults_of(text)


# Unknown keys


def test_unknown_keys_are_named_with_the_nearest(plan_of: Any, tmp_path: Path) -> None:
    plan = plan_of(
        "colour = 1\n[ap]\nx = 1\n"
        + LEAST
        + 'backof_min = "1s"\n[source_pool]\nlag = 3\n[filters.f]\npaht = "x"\n'
    )
    assert [each.replace(f"{tmp_path}/", "") for each in plan.notes] == [
        "1.toml: unknown key colour",
        "1.toml: unknown key ap; the nearest is app",
        "1.toml: unknown key source_pool.lag",
        "1.toml: unknown key target.backof_min; the nearest is backoff_min",
        "1.toml: unknown key filters.f.paht; the nearest is path",
    ]


@pytest.mark.parametrize(
    "key", [key for key in KEYS if not key.acts], ids=lambda key: f"{key.section}.{key.name}"
)
def test_what_has_no_effect_is_said(key: Any, plan_of: Any) -> None:
    other = {
        Kind.TEXT: '"end"',
        Kind.SWITCH: str(not key.default).lower(),
        Kind.NUMBER: "7",
        Kind.DURATION: '"7s"',
    }
    value = f'"{key.choices[0]}"' if key.choices else other[key.kind]
    if key.section == "sources":
        text = LEAST.replace("[[sources]]", f"[[sources]]\n{key.name} = {value}")
    else:
        text = LEAST + (f"[{key.section}]\n" if key.section != "target" else "") + f"{key.name} = {value}\n"
    (note,) = plan_of(text).notes
    assert f".{key.name} has no effect: " in note


# Filters


def test_filters_of_files_and_of_the_command_line(plan_of: Any) -> None:
    text = LEAST + '[filters.a]\npath = "a.py"\nenabled = true\n[filters.b]\npath = "m:f"\nconfig = "x"\n'
    assert plan_of(text).filters == (FilterPlan("a", "a.py", "", True), FilterPlan("b", "m:f", "x", False))
    assert plan_of(text, filters=["b", "c.py", "d"]).filters == (
        FilterPlan("a", "a.py", "", True),
        FilterPlan("b", "m:f", "x", True),
        FilterPlan("c.py", "c.py", "", True),
        FilterPlan("d", "d", "", True),
    )
    assert [each.enabled for each in plan_of(text, filters=["m:f"]).filters] == [True, True]


def test_a_filter_that_is_on_needs_a_path(faults_of: Any) -> None:
    assert faults_of(LEAST + "[filters.a]\nenabled = true\n") == [
        "1.toml: filters.a.path is missing: allowed is a Python file, module:function or the name of a record filter"
    ]


# Failovers, addresses, files


def test_the_smallest_number_of_failovers_counts(plan_of: Any) -> None:
    sources = "".join(
        f'[[sources]]\nname = "{name}"\nservers = ["{name}:1"]\nmax_failovers = {most}\n'
        for name, most in (("a", -1), ("b", 5), ("c", 3))
    )
    assert plan_of(LEAST.replace('[[sources]]\nservers = ["one:9092"]\n', sources)).max_failovers == 3


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("a:1", ("a", 1)),
        (":7081", ("", 7081)),
        ("[::1]:0", ("::1", 0)),
        ("a", ("a", 9092)),
        ("[::1]", ("::1", 9092)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text, 9092) == address


@pytest.mark.parametrize("text", ["::1", "a:b", "a:65536", "a/b:1", "a,b:1", "a b:1", "a:-1", "[::1:1", "a:"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError):
        parse_address(text, 9092)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, data, line in (
        (tmp_path / "none.toml", None, "cannot be read: No such file or directory"),
        (tmp_path / "bad.toml", b"a = [", "is no TOML: "),
        (tmp_path / "latin.toml", b"a = '\xff'", "is not UTF-8, at byte 5"),
        (tmp_path / "deep.toml", b"a = " + b"[" * 100_000, "is no TOML: "),
    ):
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(PluginError) as caught:
            read_files([str(path)])
        assert str(caught.value).startswith(f"{path} {line}")
        assert "\n" not in str(caught.value)
