"""Where settings come from, which one wins, what stops the start and what is only said."""

from pathlib import Path

import pytest

from leafcuttr.config import tls_settings
from leafcuttr.config.catalog import BROKER, CORE, Catalog
from leafcuttr.config.environment import setting_name, settings_in_environment
from leafcuttr.config.findings import _FORMER, Level
from leafcuttr.config.listeners import parse_listeners
from leafcuttr.config.load import data_directory, examine, load_settings
from leafcuttr.config.settings import Settings
from leafcuttr.errors import ConfigError

# The environment of the compose file in the manual of LeafCuttr 0.5.3.
COMPOSE = {
    "KAFKA_LISTENERS": "CONTROLLER://localhost:9091,HOST://0.0.0.0:9092,DOCKER://0.0.0.0:9093",
    "KAFKA_ADVERTISED_LISTENERS": "HOST://localhost:9092,DOCKER://kafka:9093",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,DOCKER:PLAINTEXT,HOST:PLAINTEXT",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9091",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "DOCKER",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
}


def warnings_of(*overrides: str) -> list[str]:
    return load_settings(None, {}, overrides)[1]


def refusal_of(*overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(None, {}, overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_manuals_compose_file_starts_us() -> None:
    settings, warnings = load_settings(None, COMPOSE)
    assert warnings == []
    told = [(listener.name, listener.port, listener.advertised) for listener in parse_listeners(settings)]
    assert told == [("HOST", 9092, "localhost:9092"), ("DOCKER", 9093, "kafka:9093")]


def test_later_sources_win(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "# ours\nnum.partitions=2\nlog.retention.hours=5\nmessage.max.bytes = 7\nnum.partitions=3\n"
    )
    environ = {"KAFKA_LOG_RETENTION_HOURS": "6", "KAFKA_MESSAGE_MAX_BYTES": "8"}
    settings, _ = load_settings(file, environ, ["message.max.bytes=9"])
    assert settings.int("num.partitions") == 3
    assert settings.int("log.retention.hours") == 6
    assert settings.int("message.max.bytes") == 9
    assert settings.where("num.partitions") == "server.properties:5"
    assert settings.where("log.retention.hours") == "KAFKA_LOG_RETENTION_HOURS"
    assert settings.where("message.max.bytes") == "-o"
    assert settings.where("node.id") == "default"


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LOG_DIRS", "log.dirs"),
        ("KAFKA_A__B", "a_b"),
        ("KAFKA_A___B", "a-b"),
        ("KAFKA_LISTENER_NAME_X___Y_SSL_KEY", "listener.name.x-y.ssl.key"),
    ],
)
def test_names_of_variables(variable: str, name: str) -> None:
    assert setting_name(variable) == name


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LC_FILTERS_ORDERS", "lc.filters.orders"),
        ("KAFKA_LC_FILTERS_Orders__1___a", "lc.filters.Orders_1-a"),
        ("KAFKA_lc_filters_orders-*", "lc.filters.orders-*"),
        ("KAFKA_LC_VALIDATORS_*", "lc.validators.*"),
        ("KAFKA_LC_FILTERS_DEAD_LETTER_TOPIC", "lc.filters.dead.letter.topic"),
    ],
)
def test_names_of_families_in_variables(variable: str, name: str) -> None:
    assert setting_name(variable, CORE.families) == name
    settings, _ = load_settings(None, {variable: "x"})
    assert name in settings.given_names or name in settings.extra


def test_a_family_without_a_member_is_refused() -> None:
    assert setting_name("KAFKA_LC_FILTERS_", CORE.families) == "lc.filters."
    with pytest.raises(ConfigError, match=r"after lc\.filters\. there has to be something"):
        load_settings(None, {"KAFKA_LC_FILTERS_": "x"})


@pytest.mark.parametrize(
    ("variable", "topic_filter"),
    [
        ("KAFKA_MQTT_TOPIC_MAPPING_TEST/TOPIC/+", "test/topic/+"),
        ("KAFKA_MQTT_TOPIC_MAPPING_Test/TOPIC/+", "Test/TOPIC/+"),
        ("KAFKA_MQTT_TOPIC_MAPPING_test/topic__1/#", "test/topic_1/#"),
        ("KAFKA_MQTT_TOPIC_MAPPING_A_B___C/#", "a.b-c/#"),
        ("KAFKA_MQTT_TOPIC_MAPPING_#", "#"),
        ("KAFKA_MQTT_TOPIC_MAPPING_+/+", "+/+"),
        ("KAFKA_MQTT_TOPIC_MAPPING_/A B/+", "/a b/+"),
        ("KAFKA_MQTT_TOPIC_MAPPING_É/+", "é/+"),
    ],
)
def test_topic_filters_in_variables(variable: str, topic_filter: str) -> None:
    """A family of the MQTT broker: mixed case is kept."""
    families = [*CORE.families, "mqtt.topic.mapping.", "mqtt.topic.key."]
    assert setting_name(variable, families) == f"mqtt.topic.mapping.{topic_filter}"


def test_variables_of_kafkas_scripts_are_none_of_ours() -> None:
    environ = dict.fromkeys(
        [
            "KAFKA_OPTS",
            "KAFKA_HEAP_OPTS",
            "KAFKA_JMX_PORT",
            "KAFKA_JMX_OPTS",
            "JMX_PORT",
            "KAFKA_LOG4J_OPTS",
            "KAFKA_LOG4J_ROOT_LOGLEVEL",
            "KAFKA_JVM_PERFORMANCE_OPTS",
            "KAFKA_GC_LOG_OPTS",
            "KAFKA_HOME",
            "KAFKA_VERSION",
            "PATH",
        ],
        "x",
    )
    assert list(settings_in_environment(environ)) == []
    assert load_settings(None, environ)[1] == []


def test_the_message_names_key_value_source_and_what_is_allowed(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("\nlog.segment.bytes=12\n")
    with pytest.raises(ConfigError) as caught:
        load_settings(file, {})
    assert str(caught.value) == (
        "log.segment.bytes=12 (server.properties:2): allowed is a whole number, at least 1048576"
    )


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("compression.type=rar", "allowed is one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("log.preallocate=1", "allowed is true or false"),
        ("log.cleanup.policy=burn", "allowed is any of compact, delete"),
        ("compression.gzip.level=0", "Value must be between 1 and 9 or equal to -1"),
        ("log.dirs=/a,/b", "allowed is one directory"),
        ("log.dir=", "allowed is one directory"),
        ("process.roles=controller", "allowed is broker or broker,controller"),
        ("lc.log.sync.always=maybe", "allowed is true or false"),
        ("authorizer.class.name=x.Y", "Java classes cannot be loaded; allowed is org.apache.kafka"),
        ("super.users=User:a;bob", "'bob' is not type:name"),
        ("remote.log.storage.system.enable=true", "there is no tiered storage"),
        ("log.segment.bytes=3000000000", "a whole number from 1048576 to 2147483647"),
        ("node.id=99999999999999999999999", "a whole number from 0 to 2147483647"),
        ("log.retention.ms=0", "-1 (without limit) or at least 1"),
        ("log.retention.hours=0", "-1 (without limit) or at least 1"),
        ("log.cleaner.max.compaction.lag.ms=5", None),
        ("group.min.session.timeout.ms=99999999", "at most the value of group.max.session.timeout.ms"),
        ("nonsense", "allowed is key=value"),
    ],
)
def test_bad_values(override: str, line: str | None) -> None:
    if line is None:
        assert warnings_of(override) == []
        return
    assert line in refusal_of(override)
    assert refusal_of(override).startswith(override if "=" in override else "-o nonsense")


def test_a_secret_is_not_printed() -> None:
    assert "hunter2" not in str(load_settings(None, {}, ["ssl.key.password=hunter2"])[1])


def test_names_of_one_broker_have_to_agree() -> None:
    assert warnings_of("node.id=3", "broker.id=3") == []
    assert "node.id is 3" in refusal_of("node.id=3", "broker.id=4")


def test_the_old_name_of_the_broker_counts_alone() -> None:
    assert load_settings(None, {}, ["broker.id=7"])[0].int("node.id") == 7
    assert load_settings(None, {}, ["node.id=7"])[0].int("broker.id") == 7


def test_contradicting_lags() -> None:
    line = refusal_of("log.cleaner.min.compaction.lag.ms=10", "log.cleaner.max.compaction.lag.ms=5")
    assert line.startswith("log.cleaner.min.compaction.lag.ms=10 (-o)")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.properties: No such file"):
        load_settings(tmp_path / "missing.properties", {})
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_settings(tmp_path / "binary", {})


def test_one_warning_for_all_replication_factors() -> None:
    (warning,) = warnings_of("default.replication.factor=3", "offsets.topic.replication.factor=2")
    assert "default.replication.factor, offsets.topic.replication.factor are above 1" in warning
    assert "1 is used" in warning


def test_no_replication_is_said_once() -> None:
    (warning,) = warnings_of("lc.isolated=false")
    assert "no replication" in warning or "without replication" in warning


def test_an_unknown_name_gets_the_nearest_one() -> None:
    (warning,) = warnings_of("log.retension.ms=5")
    assert warning == (
        "log.retension.ms (-o) is not a known setting and has no effect; did you mean log.retention.ms?"
    )
    (warning,) = warnings_of("zzzzzz=5")
    assert "did you mean" not in warning


@pytest.mark.parametrize("name", [row.name for row in tls_settings.SETTINGS])
def test_tls_of_one_listener_in_the_environment(name: str) -> None:
    """Each `ssl.*`; of a listener with an underscore in its name too."""
    variable = "KAFKA_LISTENER_NAME_SASL__SSL_" + name.upper().replace(".", "_")
    own = f"listener.name.sasl_ssl.{name}"
    assert setting_name(variable) == own
    row = CORE.broker_setting(own)
    assert row is not None
    text = {"BOOLEAN": "true", "STRING": row.choices[0] if row.choices else "x"}.get(row.type.name, "x")
    settings, warnings = load_settings(None, {variable: text})
    assert warnings == []
    assert settings.values[own] == row.parse(text)


def test_names_that_are_known_elsewhere() -> None:
    assert warnings_of("zookeeper.connect=z:2181", "log.message.format.version=2.8") == [
        "zookeeper.connect (-o) is a setting of Kafka before 4.0 and has no effect",
        "log.message.format.version (-o) is a setting of Kafka before 4.0 and has no effect",
    ]
    assert warnings_of("listener.name.a.ssl.keystore.location=/x") == []
    assert warnings_of("listener.name.a.ssl.provider=/x") == []
    assert [each.line for each in examine(None, {}, ["listener.name.a.ssl.provider=/x"])[1]] == [
        "listener.name.a.ssl.provider=/x (-o) has no effect here: OpenSSL does TLS here, and Java has no part in it"
    ]
    (warning,) = warnings_of("listener.name.a.message.max.bytes=5")
    assert "it cannot be given for one listener" in warning
    assert warnings_of("listener.name.a.max.connections=5") == []
    assert "at least 0" in refusal_of("listener.name.a.max.connections=-5")
    former = [name for name in BROKER if name in _FORMER]
    assert not former


@pytest.mark.parametrize(
    "override",
    [
        "lc.mqtt.broker.enable=true",
        "lc.schema.registry.enable=TRUE",
        "lc.http.proxy.enable=true",
        "lc.topic.forward.config=/etc/mm2.properties",
    ],
)
def test_plugins_that_are_not_installed(override: str) -> None:
    (warning,) = warnings_of(override)
    assert warning.endswith("needs a plugin that this version does not have")


def test_settings_of_plugins_that_enable_nothing_are_kept_for_them() -> None:
    settings, warnings = load_settings(
        None, {}, ["mqtt.port=1884", "lc.mqtt.broker.enable=false", "mqtt.topic.mapping.a/+=b"]
    )
    assert warnings == []
    assert settings.extra["mqtt.topic.mapping.a/+"].text == "b"


def test_the_manuals_names_of_flushing() -> None:
    settings, warnings = load_settings(None, {}, ["flush.interval.messages=5", "flush.interval.ms=6"])
    assert warnings == []
    assert settings.int("log.flush.interval.messages") == 5
    assert settings.int("log.flush.interval.ms") == 6


def test_a_guessed_address_is_said() -> None:
    (warning,) = warnings_of("listeners=PLAINTEXT://0.0.0.0:9092")
    assert "PLAINTEXT binds every interface" in warning


@pytest.mark.parametrize("key", ["listeners", "advertised.listeners"])
def test_a_malformed_address_is_said_with_all_else(key: str) -> None:
    found = examine(None, {}, [f"{key}=PLAINTEXT//nowhere", "log.retention.hours=x", "no.such.name=1"])[1]
    assert [(each.key, each.level) for each in found] == [
        ("log.retention.hours", Level.ERROR),
        (key, Level.ERROR),
        ("no.such.name", Level.WARNING),
    ]
    assert "is not NAME://host:port" in found[1].line


def test_the_data_directory() -> None:
    assert data_directory(load_settings(None, {})[0]) == Path("leafcuttr-data")
    assert data_directory(load_settings(None, {}, ["log.dir=/a"])[0]) == Path("/a")
    assert data_directory(load_settings(None, {}, ["log.dir=/a", "log.dirs=/b"])[0]) == Path("/b")


PROVIDERS = (
    "config.providers=file,env\n"
    "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
    "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
)


def with_providers(folder: Path, text: str) -> Path:
    file = folder / "server.properties"
    file.write_text(PROVIDERS + text.replace("SECRETS", str(folder / "secrets.properties")))
    (folder / "secrets.properties").write_text("password=open sesame\nparts=7\nmany=seven\nbytes=8\n")
    return file


@pytest.mark.setting("config.providers")
def test_values_that_are_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that the environment and the command line give; how to look them up is no unknown setting."""
    file = with_providers(
        tmp_path, "ssl.key.password=${file:SECRETS:password}\nnum.partitions=${file:SECRETS:parts}\n"
    )
    monkeypatch.setenv("RETENTION", "5")
    environ = {"KAFKA_LOG_RETENTION_HOURS": "${env:RETENTION}"}
    settings, warnings = load_settings(
        file, environ, [f"message.max.bytes=10${{file:{tmp_path}/secrets.properties:bytes}}"]
    )
    assert warnings == []
    assert settings.value("ssl.key.password") == "open sesame"
    assert (settings.int("num.partitions"), settings.int("log.retention.hours")) == (7, 5)
    assert settings.int("message.max.bytes") == 108
    assert settings.where("num.partitions") == "server.properties:5"
    assert settings.list("config.providers") == ("file", "env")


def test_a_provider_that_plugins_need(tmp_path: Path) -> None:
    """What says where plugins are may be elsewhere too."""
    seen: list[Settings] = []

    def find(about: Settings) -> Catalog:
        seen.append(about)
        return CORE

    file = with_providers(tmp_path, "lc.plugins.disabled=x${file:SECRETS:parts}\n")
    load_settings(file, {}, (), find)
    assert seen[0].list("lc.plugins.disabled") == ("x7",)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "num.partitions=${file:SECRETS:none}",
            "num.partitions (server.properties:4): ${file:SECRETS:none}: SECRETS has no none",
        ),
        (
            "num.partitions=${file:/nowhere:x}",
            "num.partitions (server.properties:4): ${file:/nowhere:x}: /nowhere cannot be read: No such file or "
            "directory",
        ),
        (
            "num.partitions=${file:SECRETS:many}",
            "num.partitions=${file:SECRETS:many} (server.properties:4): allowed is a whole number, at least 1",
        ),
        (
            "log.cleanup.policy=${file:SECRETS:password}",
            "log.cleanup.policy=${file:SECRETS:password} (server.properties:4): allowed is any of compact, delete",
        ),
        (
            "listeners=${file:SECRETS:password}",
            "listeners=${file:SECRETS:password} (server.properties:4): '${file:SECRETS:password}' is not NAME",
        ),
        (
            "config.providers=vault",
            "",
        ),
    ],
)
def test_what_cannot_be_had_stops_the_start_and_shows_no_secret(tmp_path: Path, line: str, why: str) -> None:
    file = with_providers(tmp_path, line)
    if not why:
        load_settings(file, {})
        return
    with pytest.raises(ConfigError) as caught:
        load_settings(file, {})
    found = str(caught.value)
    assert found.replace(str(tmp_path / "secrets.properties"), "SECRETS").startswith(why)
    assert "sesame" not in found and "seven" not in found
    if line.startswith("listeners="):
        return
    _, findings = examine(file, {})
    assert found in [finding.line for finding in findings]
    assert all("sesame" not in f"{finding.line} {finding.value}" for finding in findings)


HANDLER = "listener.name.in.oauthbearer.sasl.server.callback.handler.class"
SECURITY = "org.apache.kafka.common.security"


def test_classes_that_decide_log_ins() -> None:
    """Kafka's own do what the broker does; without another one log-ins would be decided otherwise than was meant."""
    for name in ("OAuthBearerValidatorCallbackHandler", "secured.OAuthBearerValidatorCallbackHandler"):
        assert warnings_of(f"{HANDLER}={SECURITY}.oauthbearer.{name}") == []
    unsigned = f"{SECURITY}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    assert refusal_of(f"{HANDLER}={unsigned}").endswith("(-o): tokens that nobody has signed would be taken")
    assert "Java classes cannot be loaded" in refusal_of("sasl.server.callback.handler.class=com.acme.Ldap")
    validator = "sasl.oauthbearer.jwt.validator.class"
    assert warnings_of(f"{validator}={SECURITY}.oauthbearer.BrokerJwtValidator") == []
    refused = refusal_of(f"{validator}={SECURITY}.oauthbearer.ClientJwtValidator")
    assert "Java classes cannot be loaded, and tokens would be checked otherwise" in refused


METRICS_TLS = "lc.metrics.ssl."
WITH_KEY = f"{METRICS_TLS}keystore.location=/k.pem"
WITH_TRUST = f"{METRICS_TLS}truststore.location=/t.pem"


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        (
            ["lc.metrics.auth=basic,mtls"],
            [
                f"lc.metrics.auth=basic,mtls (-o): without {METRICS_TLS}keystore.location there are no certificates of "
                "clients"
            ],
        ),
        (
            [WITH_KEY, "lc.metrics.auth=mtls"],
            [
                "lc.metrics.auth=mtls (-o): clients show no certificates, because "
                f"{METRICS_TLS}client.auth is none"
            ],
        ),
        (
            [f"{METRICS_TLS}client.auth=requested", "lc.metrics.auth=mtls"],
            [
                f"{METRICS_TLS}client.auth=requested (-o): without {METRICS_TLS}keystore.location there are no "
                "certificates of clients"
            ],
        ),
        (
            [WITH_KEY, f"{METRICS_TLS}client.auth=required"],
            [
                f"{METRICS_TLS}client.auth=required (-o): it needs {METRICS_TLS}truststore.location, which signs the "
                "certificates of clients"
            ],
        ),
        (
            [WITH_TRUST, f"{METRICS_TLS}key.password=sesame"],
            [
                f"{METRICS_TLS}truststore.location=/t.pem (-o): without {METRICS_TLS}keystore.location the metrics "
                "port is plaintext",
                f"{METRICS_TLS}key.password (-o): without {METRICS_TLS}keystore.location the metrics port is plaintext",
            ],
        ),
        (["lc.metrics.enable=false", "lc.metrics.auth=mtls", WITH_TRUST], []),
        ([WITH_KEY, WITH_TRUST, f"{METRICS_TLS}client.auth=requested", "lc.metrics.auth=mtls"], []),
        ([WITH_KEY, WITH_TRUST, "lc.metrics.auth=basic"], []),
    ],
)
def test_tls_of_the_metrics_port(given: list[str], lines: list[str]) -> None:
    errors = [each.line for each in examine(None, {}, given)[1] if each.level is Level.ERROR]
    assert errors == lines
