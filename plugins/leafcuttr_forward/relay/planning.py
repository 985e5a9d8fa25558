"""Files to a plan: every value checked by the table of keys, every fault named with its file, key, value and what is
allowed."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from leafcuttr_forward.names import check_topic
from leafcuttr_forward.relay.durations import parse_duration
from leafcuttr_forward.relay.files import Given, Tree, file_of
from leafcuttr_forward.relay.keys import KEYS, SECTIONS, Kind, RelayKey, keys_of
from leafcuttr_forward.relay.plan import (
    ClusterPlan,
    FilterPlan,
    PoolPlan,
    RelayFaultsError,
    RelayPlan,
    RetryPlan,
    TopicPair,
    parse_address,
    parse_target,
    parse_topic,
)

_DEFAULT_PORT: Final = 9092
_SECRET: Final = "password"


def make_plan(
    tree: Tree,
    *,
    mode: str | None = None,
    stop_at_end: bool | None = None,
    topics: Iterable[str] = (),
    filters: Iterable[str] = (),
) -> RelayPlan:
    """The plan of merged files and of the options that go before them. Raises RelayFaultsError."""
    return _Reader(tree).plan(mode, stop_at_end, topics, filters)


class _Section:
    """The values of one section, each as its key says."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        return str(self._values[name])

    def yes(self, name: str) -> bool:
        return bool(self._values[name])

    def number(self, name: str) -> int:
        return int(self._values[name])

    def seconds(self, name: str) -> float:
        return parse_duration(self._values[name])

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(self._values[name])


class _Reader:
    """Reads one tree once, and keeps what is wrong with it."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._faults: list[str] = []
        self._notes: list[str] = []

    def plan(
        self, mode: str | None, stop_at_end: bool | None, topics: Iterable[str], filters: Iterable[str]
    ) -> RelayPlan:
        top = {name: each for name, each in self._tree.items() if name not in SECTIONS}
        flags = self._section("", top, "")
        app = self._section("app", self._table("app"), "app")
        pool = self._section("source_pool", self._table("source_pool"), "source_pool")
        target_table = self._table("target")
        target = self._section("target", target_table, "target")
        pairs = self._topics(topics)
        sources = self._sources()
        found_filters = self._filters(filters)
        if not target_table:
            self._faults.append("there is no [target]")
        pool_plan = PoolPlan(
            pool.seconds("healthcheck_interval"),
            pool.number("offset_lag_threshold"),
            pool.seconds("request_timeout"),
            pool.yes("randomize_initial"),
            self._backoff(pool, "source_pool"),
        )
        for name, value in (
            ("healthcheck_interval", pool_plan.interval_s),
            ("request_timeout", pool_plan.request_timeout_s),
        ):
            if value <= 0:
                self._wrong(
                    "source_pool", name, self._table("source_pool").get(name), "allowed is a duration above 0"
                )
        plan = RelayPlan(
            mode or flags.text("mode"),
            flags.yes("stop-at-end") if stop_at_end is None else stop_at_end,
            app.text("log_level"),
            self._address(app.text("metrics_server_addr")),
            pairs,
            pool_plan,
            sources,
            self._cluster(target, target_table, "target", required=bool(target_table)),
            self._backoff(target, "target"),
            found_filters,
            tuple(map(_line, self._notes)),
        )
        if plan.mode == "failover" and plan.stop_at_end:
            self._faults.append(
                "--stop-at-end cannot be used with --mode failover: a source that is behind has no end"
            )
        if self._faults:
            raise RelayFaultsError([*map(_line, self._faults)])
        return plan

    # Sections

    def _table(self, name: str) -> Tree:
        found = self._tree.get(name, {})
        if isinstance(found, Given):
            self._faults.append(f"{found.file}: {name} = {_shown(found.value)}: allowed is a table, [{name}]")
            return {}
        return found

    def _section(self, section: str, table: Tree, label: str) -> _Section:
        """Its values, with defaults in the place of those that are missing or wrong."""
        known = keys_of(section)
        values: dict[str, Any] = {name: _default(key) for name, key in known.items()}
        for name, given in table.items():
            key = known.get(name)
            if key is None:
                self._unknown(section, label, name, file_of(given))
            elif isinstance(given, Given) and _is_allowed(key, given.value):
                values[name] = given.value
                if not key.acts and given.value != key.default:
                    self._notes.append(
                        f"{given.file}: {_path(label, name)} has no effect: {key.here.partition(': ')[2]}"
                    )
            else:
                self._wrong(label, name, given, f"allowed is {key.allowed}")
        return _Section(values)

    def _unknown(self, section: str, label: str, name: str, file: str) -> None:
        names = [key.name for key in KEYS if key.section == section and section != "topics"]
        if not section:
            names += [each for each in SECTIONS if each]
        near = difflib.get_close_matches(name, names, 1)
        hint = f"; the nearest is {near[0]}" if near else ""
        self._notes.append(f"{file}: unknown key {_path(label, name)}{hint}")

    def _wrong(self, label: str, name: str, given: "Given | Tree | None", allowed: str) -> None:
        value = given.value if isinstance(given, Given) else given
        shown = "..." if name == _SECRET else _shown(value)
        file = "" if given is None else f"{file_of(given)}: "
        self._faults.append(f"{file}{_path(label, name)} = {shown}: {allowed}")

    # Parts

    def _topics(self, more: Iterable[str]) -> tuple[TopicPair, ...]:
        """Those of the files, and those of `--topic`, which replace what the files say of the same source topic."""
        found: dict[str, TopicPair] = {}
        for name, given in self._flat_topics():
            if not isinstance(given.value, str):
                self._wrong("topics", name, given, "allowed is a text, the target topic")
                continue
            try:
                found[name] = TopicPair(check_topic(name), *parse_target(given.value))
            except ValueError as error:
                self._wrong("topics", name, given, f"{error}; allowed is TARGET or TARGET:PARTITION")
        for text in more:
            try:
                pair = parse_topic(text)
            except ValueError as error:
                self._faults.append(f"--topic {text}: {error}")
            else:
                found[pair.source] = pair
        if not found and not self._faults:
            self._faults.append("there are no topics: write [topics], or give --topic SOURCE:TARGET")
        return tuple(found.values())

    def _flat_topics(self) -> "list[tuple[str, Given]]":
        """Of `[topics]`, or of all tables of `[[topics]]`. A dotted key is a name with dots."""
        topics = self._tree.get("topics", {})
        if not isinstance(topics, Given):
            return list(_flat(topics))
        if not _is_tables(topics.value):
            self._faults.append(
                f"{topics.file}: topics = {_shown(topics.value)}: allowed is a table, [topics]"
            )
            return []
        return [pair for table in topics.value for pair in _flat(_as_tree(table, topics.file))]

    def _sources(self) -> tuple[ClusterPlan, ...]:
        given = self._tree.get("sources", {})
        file = file_of(given)
        if isinstance(given, dict):  # [sources]: a single one
            tables = [given] if given else []
        elif _is_tables(given.value):
            tables = [_as_tree(each, file) for each in given.value]
        else:
            self._faults.append(f"{file}: sources = {_shown(given.value)}: allowed are tables, [[sources]]")
            return ()
        if not tables:
            self._faults.append("there is no [[sources]]")
        found: list[ClusterPlan] = []
        for number, table in enumerate(tables, 1):
            name = table.get("name")
            named = isinstance(name, Given) and isinstance(name.value, str) and name.value
            label = f"sources[{named or number}]"
            section = self._section("sources", table, label)
            cluster = self._cluster(section, table, label, max_failovers=section.number("max_failovers"))
            if any(each.name == cluster.name for each in found):
                self._faults.append(f"{file}: two sources have the name {cluster.name}")
            found.append(cluster)
        return tuple(found)

    def _cluster(
        self, section: _Section, table: Tree, label: str, *, required: bool = True, max_failovers: int = -1
    ) -> ClusterPlan:
        servers = section.texts("servers")
        if required and not servers and "servers" not in table:
            self._faults.append(
                f"{file_of(table)}: {label}.servers is missing: allowed is a list of host:port"
            )
        elif required and not servers:
            self._wrong(label, "servers", table["servers"], "allowed is a list of host:port, one at least")
        addresses: list[str] = []
        for each in servers:
            try:
                host, port = parse_address(each, _DEFAULT_PORT)
            except ValueError as error:
                self._wrong(label, "servers", table["servers"], f"{each!r} is no address: {error}")
            else:
                addresses.append(f"[{host}]:{port}" if ":" in host else f"{host or 'localhost'}:{port}")
        auth = None
        if section.yes("enable_auth"):
            auth = section.text("sasl_mechanism"), section.text("username"), section.text("password")
            for name, value in zip(("sasl_mechanism", "username"), auth, strict=False):
                if not value:
                    allowed = (
                        "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512" if name == "sasl_mechanism" else "a text"
                    )
                    self._faults.append(
                        f"{file_of(table)}: {label}.{name} is missing, with enable_auth = true: allowed is "
                        f"{allowed}"
                    )
        certificate, key = section.text("client_cert_path"), section.text("client_key_path")
        if section.yes("enable_tls") and bool(certificate) != bool(key):
            self._faults.append(
                f"{file_of(table)}: {label}: of client_cert_path and client_key_path one is missing; allowed are"
                " both or none"
            )
        return ClusterPlan(
            section.text("name") or (addresses[0] if addresses else label),
            tuple(addresses),
            section.seconds("session_timeout"),
            auth,
            section.yes("enable_tls"),
            section.text("ca_cert_path"),
            certificate,
            key,
            max_failovers,
        )

    def _backoff(self, section: _Section, label: str) -> RetryPlan:
        found = RetryPlan(
            section.number("max_retries"),
            section.yes("backoff_enable"),
            section.seconds("backoff_min"),
            section.seconds("backoff_max"),
        )
        if found.enabled and not 0 < found.min_s <= found.max_s:
            table = self._table(label)
            given = table.get("backoff_min", table.get("backoff_max"))
            self._wrong(
                label,
                "backoff_min",
                given,
                f"allowed is a duration above 0 and up to backoff_max ({section.text('backoff_max')})",
            )
        return found

    def _filters(self, names: Iterable[str]) -> tuple[FilterPlan, ...]:
        """Those of the files, and those that only `--filter` names: a path, `module:function` or a record filter."""
        wanted = dict.fromkeys(names)
        found: list[FilterPlan] = []
        for name, table in self._table("filters").items():
            if isinstance(table, Given):
                self._wrong("filters", name, table, f"allowed is a table, [filters.{name}]")
                continue
            section = self._section("filters", table, f"filters.{name}")
            enabled = section.yes("enabled") or name in wanted or section.text("path") in wanted
            wanted.pop(name, None)
            wanted.pop(section.text("path"), None)
            if enabled and not section.text("path"):
                self._faults.append(
                    f"{file_of(table)}: filters.{name}.path is missing: allowed is a Python file, "
                    "module:function or the name of a record filter"
                )
            found.append(FilterPlan(name, section.text("path"), section.text("config"), enabled))
        found += (FilterPlan(name, name, "", True) for name in wanted)
        return tuple(found)

    def _address(self, text: str) -> tuple[str | None, int] | None:
        if not text:
            return None
        try:
            host, port = parse_address(text)
        except ValueError as error:
            self._wrong(
                "app",
                "metrics_server_addr",
                self._table("app").get("metrics_server_addr"),
                f"{error}, or :PORT",
            )
            return None
        return host or None, port


def _default(key: RelayKey) -> Any:
    return () if key.kind is Kind.TEXTS else key.default


def _is_allowed(key: RelayKey, value: object) -> bool:
    if key.choices:
        return value in key.choices
    match key.kind:
        case Kind.TEXT:
            return isinstance(value, str)
        case Kind.SWITCH:
            return isinstance(value, bool)
        case Kind.NUMBER:
            return type(value) is int and (key.least is None or value >= key.least)
        case Kind.TEXTS:
            return isinstance(value, list) and all(
                isinstance(each, str) for each in cast("list[object]", value)
            )
        case Kind.DURATION:
            return isinstance(value, str) and _is_duration(value)


def _is_duration(text: str) -> bool:
    try:
        return parse_duration(text) >= 0
    except ValueError:
        return False


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in cast("list[object]", value))


def _as_tree(table: Mapping[str, Any], file: str) -> Tree:
    return {
        name: _as_tree(each, file) if isinstance(each, dict) else Given(each, file)
        for name, each in table.items()
    }


def _flat(tree: Tree, before: str = "") -> "Iterable[tuple[str, Given]]":
    for name, each in tree.items():
        if isinstance(each, Given):
            yield f"{before}{name}", each
        else:
            yield from _flat(each, f"{before}{name}.")


def _path(label: str, name: str) -> str:
    return f"{label}.{name}" if label else name


def _line(text: str) -> str:
    """With escapes in the place of line ends, and of what else a terminal would not print: keys and values of TOML may
    have them."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _shown(value: object) -> str:
    """As TOML would have it, about."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value[:200]}"'
    return "a table" if isinstance(value, dict) else str(value)[:200]
