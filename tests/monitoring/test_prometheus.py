"""A real Prometheus against a real broker: the exposition, the alert rules and every expression of the board.

Debian's package `prometheus` has the server and promtool; without it these tests are skipped.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from leafcuttr.metrics.catalog import METRICS
from leafcuttr.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from leafcuttr_sdk.metrics import Kind
from support.broker_process import BrokerProcess, running_broker
from support.tls_peer import Certificates
from support.waiting import free_port, until
from support.wire_client import WireClient

MONITORING = Path(__file__).parents[2] / "docs" / "how-to" / "monitoring"
RULES = MONITORING / "leafcuttr.rules.yml"

# A service, so that there are series of services.
PLUGIN = """
import trio
from leafcuttr_sdk import Plugin, ServiceSpec

PLUGIN = Plugin("pulse", 1, "Does nothing.")

def leafcuttr_register_services():
    return [ServiceSpec("pulse", lambda broker: Pulse())]

class Pulse:
    async def run(self, *, task_status):
        task_status.started()
        await trio.sleep_forever()
"""

pytestmark = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="Prometheus is not installed (Debian: apt-get install prometheus)",
)


class Prometheus:
    """A running server with one target, which it scrapes five times a second."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, path: str, **query: str) -> Any:
        """The data of an answer of its API. Raises OSError."""
        url = f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant query; an expression that it cannot parse fails the test."""
        try:
            result: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                raise  # it is starting
            pytest.fail(f"{expression}: {error.read().decode()}")
        return result


@contextmanager
def running_prometheus(folder: Path, target: str) -> Iterator[Prometheus]:
    folder.mkdir()
    port = free_port()
    config = {
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            # No bound by speed: a slow machine scrapes more slowly.
            {
                "job_name": "leafcuttr",
                "scrape_interval": "1s",
                "scrape_timeout": "1s",
                "static_configs": [{"targets": [target]}],
            }
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log, cwd=folder
        )
    server = Prometheus(f"127.0.0.1:{port}")

    def scrapes() -> bool:
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
        try:
            return bool(server.query("up == 1"))
        except OSError:
            return False

    try:
        until(scrapes, "the first scrape")
        yield server
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    (folder / "plugins").mkdir()
    (folder / "plugins" / "pulse.py").write_text(PLUGIN)
    settings = {
        "lc.plugins.path": str(folder / "plugins"),
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "ssl.keystore.location": Certificates(folder).issue("localhost").file,
    }
    with running_broker(folder, settings) as found:
        yield found


def admin_address(broker: BrokerProcess) -> str:
    address: str = json.loads((broker.folder / "ready.json").read_text())["metrics"]
    return address


@pytest.fixture(scope="module")
def prometheus(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with running_prometheus(tmp_path_factory.mktemp("p") / "prometheus", admin_address(broker)) as found:
        Traffic(broker.address).flow()
        yield found


class Traffic:
    """Something of everything that the board shows."""

    def __init__(self, address: str) -> None:
        self._servers = {"bootstrap.servers": address}

    def flow(self) -> None:
        admin = AdminClient(self._servers)
        for made in admin.create_topics([NewTopic("orders", 2, 1)]).values():
            made.result(60)
        producer = Producer({**self._servers, "transactional.id": "shop"})
        producer.init_transactions(60)
        producer.begin_transaction()
        for number in range(500):
            producer.produce("orders", b"%d" % number, partition=number % 2)
        producer.commit_transaction(60)
        consumer = Consumer(
            {
                **self._servers,
                "group.id": "billing",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["orders"])
        seen = 0
        while seen < 500:
            for message in consumer.consume(500, 60):
                assert message.error() is None, message.error()
                seen += 1
        consumer.commit(
            offsets=[TopicPartition("orders", 0, 100), TopicPartition("orders", 1, 200)], asynchronous=False
        )
        consumer.close()
        (refused,) = admin.create_topics([NewTopic("orders", 2, 1)]).values()
        with pytest.raises(Exception) as error:
            refused.result(60)
        assert error.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
        self._exceed_a_quota()

    def _exceed_a_quota(self) -> None:
        slow = RequestEntryData(
            entity=[EntityData(entity_type="client-id", entity_name="slow")],
            ops=[OpData(key="producer_byte_rate", value=1.0, remove=False)],
        )
        with WireClient(self._servers["bootstrap.servers"]) as client:
            answer = client.ask(AlterClientQuotasRequest(entries=[slow], validate_only=False), 1)
        assert [entry.error_code for entry in answer.entries] == [0]
        producer = Producer({**self._servers, "client.id": "slow"})
        producer.produce("slow", b"more than a byte a second")
        assert producer.flush(60) == 0


def promtool(*words: str, given: bytes | None = None) -> str:
    done = subprocess.run(
        ["promtool", *words], input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=MONITORING
    )
    text = done.stdout.decode()
    assert done.returncode == 0, text
    return text


def test_promtool_finds_nothing_wrong_with_the_exposition(broker: BrokerProcess) -> None:
    with urllib.request.urlopen(f"http://{admin_address(broker)}/metrics", timeout=60) as answer:
        assert promtool("check", "metrics", given=answer.read()) == ""


@pytest.mark.long
def test_promtool_checks_the_rules_and_their_tests() -> None:
    assert "SUCCESS" in promtool("check", "rules", RULES.name)
    assert "FAILED" not in promtool("test", "rules", "leafcuttr.rules.test.yml")


def test_every_alert_has_a_test() -> None:
    alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    # One that fires, whatever else is said of it.
    fires = re.findall(
        r"alertname: (\w+)\n +exp_alerts:", (MONITORING / "leafcuttr.rules.test.yml").read_text()
    )
    assert alerts == set(fires)


def test_the_series_are_there(prometheus: Prometheus) -> None:
    def value(expression: str) -> float | None:
        found = prometheus.query(expression)
        return float(found[0]["value"][1]) if found else None

    expected = {
        'sum(kafka_server_brokertopicmetrics_messagesin_total{topic="orders"})': 502,  # and two markers
        'sum(kafka_log_log_logendoffset{topic="orders"})': 502,
        'kafka_consumergroup_current_offset{consumergroup="billing", topic="orders", partition="1"}': 200,
        'kafka_consumergroup_lag{consumergroup="billing", topic="orders", partition="0"}': 151,
        'leafcuttr_transactions_ended_total{outcome="commit"}': 1,
        'kafka_network_requestmetrics_errors_total{request="CreateTopics", error="TOPIC_ALREADY_EXISTS"}': 1,
        "count(leafcuttr_health_check == 1)": 11,
    }
    for expression, number in expected.items():
        until(lambda e=expression, n=number: value(e) == n, f"{expression} == {number}")  # type: ignore[misc]
    assert (value('kafka_consumergroup_lag_seconds{partition="0"}') or 0) > 0


def test_every_declared_metric_is_scraped(prometheus: Prometheus) -> None:
    def missing() -> list[str]:
        names = set(prometheus.ask("label/__name__/values"))
        return [
            metric.name
            for metric in METRICS.values()
            if (f"{metric.name}_bucket" if metric.kind is Kind.HISTOGRAM else metric.name) not in names
        ]

    # Series of their own only have what is offline, listeners and programs of plugins, and filters and validators of a
    # topic.
    absent = {
        "leafcuttr_partition_offline",
        "leafcuttr_plugin_connections",
        "leafcuttr_plugin_connections_accepted_total",
        "leafcuttr_plugin_connections_refused_total",
        "leafcuttr_plugin_connections_ended_total",
        "leafcuttr_plugin_accept_pauses_total",
        "leafcuttr_plugin_child_up",
        "leafcuttr_plugin_child_restarts_total",
        "leafcuttr_plugin_child_memory_bytes",
        "leafcuttr_filter_records_total",
        "leafcuttr_filter_failures_total",
        "leafcuttr_filter_not_ready_total",
        "leafcuttr_validator_records_total",
        "leafcuttr_validator_failures_total",
        "leafcuttr_validator_not_ready_total",
        "leafcuttr_dead_letters_total",
        "leafcuttr_dead_letters_lost_total",
    }
    until(lambda: set(missing()) == absent, "every metric")


def test_the_rules_are_evaluated_without_an_error(prometheus: Prometheus) -> None:
    def evaluated() -> bool:
        (group,) = prometheus.ask("rules")["groups"]
        bad = [rule for rule in group["rules"] if rule["health"] == "err"]
        assert bad == []
        return all(rule["health"] == "ok" for rule in group["rules"])

    until(evaluated, "the rules")
    alerts = prometheus.ask("alerts")["alerts"]
    firing = [alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"]
    # What depends on the disk of this machine is not queried.
    assert [name for name in firing if "Disk" not in name and "Writes" not in name] == []


BOARD = json.loads((MONITORING / "grafana.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
RULE_EXPRESSIONS = re.findall(r"expr: (?:>-\n)?(.*?)\n        (?:for|labels):", RULES.read_text(), re.DOTALL)


def filled_in(expression: str) -> str:
    return (
        expression.replace("$instance", ".*")
        .replace("$topic", ".*")
        .replace("$group", ".*")
        .replace("$__rate_interval", "5m")
    )


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["title"]))
def test_every_expression_of_the_board_has_data(prometheus: Prometheus, panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        expression = filled_in(target["expr"])
        until(lambda e=expression: prometheus.query(e) or None, expression)  # type: ignore[misc]


def test_the_board_is_laid_out_and_its_variables_are_there(prometheus: Prometheus) -> None:
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not taken & cells
        taken |= cells
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            label, of = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"]).groups()[::-1]  # type: ignore[union-attr]
            found = prometheus.query(f"count by ({label}) ({of})")
            assert found and all(label in each["metric"] for each in found)


def test_every_metric_named_in_rules_and_board_is_declared() -> None:
    known = {"up"}
    for metric in METRICS.values():
        endings = ("_bucket", "_sum", "_count") if metric.kind is Kind.HISTOGRAM else ("",)
        known |= {metric.name + ending for ending in endings}
    assert len(RULE_EXPRESSIONS) == RULES.read_text().count("- alert:")
    named = {name for expression in (*EXPRESSIONS, *RULE_EXPRESSIONS) for name in names_in(expression)}
    assert named - known == set()
    assert {"up", "kafka_consumergroup_lag", "leafcuttr_loop_delay_seconds_bucket"} <= named


def names_in(expression: str) -> set[str]:
    """The metrics of a PromQL expression: the names that are no function, keyword, label or string."""
    text = re.sub(r'"[^"]*"', "", expression)
    text = re.sub(r"\{[^}]*\}|\[[^]]*\]", " ", text)
    text = re.sub(r"\b(by|on|without|ignoring)\s*\([^)]*\)", " ", text)
    found = set(re.findall(r"\b[a-z_][a-z0-9_]*\b(?!\s*\()", text))
    return found - {"and", "or", "unless", "bool", "sum", "max", "min", "count", "topk"}


@pytest.mark.long
def test_a_broker_that_dies_is_noticed(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path / "broker") as broker,
        running_prometheus(tmp_path / "prometheus", admin_address(broker)) as prometheus,
    ):
        broker.stop()

        def noticed() -> bool:
            alerts = prometheus.ask("alerts")["alerts"]
            return any(alert["labels"]["alertname"] == "LeafCuttrDown" for alert in alerts)

        until(noticed, "the alert")
