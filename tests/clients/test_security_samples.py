"""The samples about security that people find, in courses on Kafka and in its old manuals: they run as they are
written,
but for those of which docs/how-to/migrate-from-kafka.md says what to write instead. Only names of hosts, ports and
folders are those of the test."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import jars
from support.broker_process import running_broker
from support.sample_scripts import Scripts
from support.waiting import free_port

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.skipif(shutil.which("keytool") is None, reason="keytool is not here (Java)"),
    pytest.mark.client("Kafka's Java tools", version="4.3.1"),
]
NEW, OLD = "4.3.1", "3.9.1"
ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
PROGRAM = """
import java.util.Properties;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.config.*;
import org.apache.kafka.common.serialization.StringSerializer;

public class Sample {
    public static void main(String[] args) throws Exception {
        Properties props = new Properties();
        props.put("bootstrap.servers", args[0]);
        props.put("key.serializer", StringSerializer.class.getName());
        props.put("value.serializer", StringSerializer.class.getName());
        SAMPLE
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(props)) {
            System.out.println("offset " + producer.send(new ProducerRecord<>("orders", "k", "v")).get().offset());
        }
    }
}
"""
MADE = {
    "keytool -keystore server.keystore.jks -alias localhost -validity 365 -genkey -keyalg RSA": (
        "test1234\ntest1234\nlocalhost\nweb\nExample\n\n\nDE\nyes\n"
    ),
    "openssl req -new -x509 -keyout ca-key -out ca-cert -days 365": "test1234\ntest1234\nDE\n\n\nExample\n\nca\n\n",
    "keytool -keystore server.truststore.jks -alias CARoot -import -file ca-cert": "test1234\ntest1234\nyes\n",
    "keytool -keystore client.truststore.jks -alias CARoot -import -file ca-cert": "test1234\ntest1234\nyes\n",
    "keytool -keystore server.keystore.jks -alias localhost -certreq -file cert-file": "test1234\n",
    "openssl x509 -req -CA ca-cert -CAkey ca-key -in cert-file -out cert-signed -days 365 -CAcreateserial "
    "-passin pass:test1234": "",
    "keytool -keystore server.keystore.jks -alias CARoot -import -file ca-cert": "test1234\nyes\n",
    "keytool -keystore server.keystore.jks -alias localhost -import -file cert-signed": "test1234\n",
}
"""The script of the manual of Kafka 0.9 that makes keystores, with -keyalg, and what a person answers."""


def java(folder: Path, address: str, sample: str) -> str:
    """The sample of a client in Java, as part of a program that writes a record."""
    source = folder / "Sample.java"
    source.write_text(PROGRAM.replace("SAMPLE", sample))
    done = subprocess.run(
        jars.java(NEW, str(source), address), capture_output=True, text=True, timeout=240, check=False
    )
    return done.stdout + done.stderr


def why_it_does_not_start(folder: Path, file: Path) -> str:
    """The line with which a broker with this file ends."""
    command = [
        sys.executable,
        "-m",
        "leafcuttr",
        "serve",
        "--config",
        str(file),
        "-o",
        f"log.dirs={folder}/none",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    return done.stderr.splitlines()[-1]


def acls_of(data: Path) -> set[str]:
    """What the broker that was here knows."""
    command = [sys.executable, "-m", "leafcuttr", "acls", "list", "--data", str(data), "--json"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    names = ("permission", "principal", "operation", "resource_type", "resource_name", "host")
    return {" ".join(str(one[name]) for name in names) for one in json.loads(told)}


def make_keystores(run: Scripts) -> None:
    for command, answers in MADE.items():
        run(command, given=answers)


def make_keystore_of_client(run: Scripts, name: str = "client") -> None:
    """As step 1 of the manual, and signed as step 3."""
    for command in (
        f"keytool -keystore {name}.keystore.jks -alias {name} -validity 365 -genkey -keyalg RSA -dname CN={name}",
        f"keytool -keystore {name}.keystore.jks -alias {name} -certreq -file {name}-file",
        f"openssl x509 -req -CA ca-cert -CAkey ca-key -in {name}-file -out {name}-signed -passin pass:test1234",
        f"keytool -keystore {name}.keystore.jks -alias CARoot -import -file ca-cert -noprompt",
        f"keytool -keystore {name}.keystore.jks -alias {name} -import -file {name}-signed",
    ):
        run(command, *(("-storepass", "test1234") if command.startswith("keytool") else ()))


REFRESHER_TLS = """# Broker config (server.properties)
listeners=SSL://broker1:9093
ssl.keystore.location=/var/ssl/private/broker1.keystore.jks
ssl.keystore.password=keystore-password
ssl.key.password=key-password
ssl.truststore.location=/var/ssl/private/broker.truststore.jks
ssl.truststore.password=truststore-password
ssl.client.auth=required # require mutual TLS (mTLS)
ssl.endpoint.identification.algorithm=https
"""
REFRESHER_TLS_CLIENT = """
props.put(CommonClientConfigs.SECURITY_PROTOCOL_CONFIG, "SSL");
props.put(SslConfigs.SSL_TRUSTSTORE_LOCATION_CONFIG, "/path/to/client.truststore.jks");
props.put(SslConfigs.SSL_TRUSTSTORE_PASSWORD_CONFIG, "truststorePassword");
props.put(SslConfigs.SSL_KEYSTORE_LOCATION_CONFIG, "/path/to/client.keystore.jks");
props.put(SslConfigs.SSL_KEYSTORE_PASSWORD_CONFIG, "keystorePassword");
props.put(SslConfigs.SSL_KEY_PASSWORD_CONFIG, "keyPassword");
"""


def test_tls_of_a_course(tmp_path: Path) -> None:
    """Keys with a password of their own, so the stores are JKS; the client in Java is the sample itself."""
    port = free_port()
    run = Scripts(
        tmp_path,
        NEW,
        {
            "broker1:9093": f"localhost:{port}",
            "/var/ssl/private": str(tmp_path),
            "/path/to": str(tmp_path),
        },
    )
    for name, store, key in (
        ("broker1", "keystore-password", "key-password"),
        ("client", "keystorePassword", "keyPassword"),
    ):
        run(
            f"keytool -genkeypair -keyalg RSA -validity 3 -alias own -dname CN=localhost -storetype JKS "
            f"-keystore {name}.keystore.jks -storepass {store} -keypass {key}"
        )
        run(
            f"keytool -exportcert -alias own -keystore {name}.keystore.jks -storepass {store} -file {name}.crt"
        )
    for name, of, secret in (
        ("broker", "client", "truststore-password"),
        ("client", "broker1", "truststorePassword"),
    ):
        run(
            f"keytool -importcert -noprompt -alias ca -file {of}.crt -storetype JKS "
            f"-keystore {name}.truststore.jks -storepass {secret}"
        )
    file = tmp_path / "server.properties"
    file.write_text(run.text(REFRESHER_TLS))
    # A comment behind a value is part of it, as in Kafka.
    assert why_it_does_not_start(tmp_path, file) == (
        "leafcuttr: ssl.client.auth=required # require mutual TLS (mTLS) (server.properties:8): allowed is one "
        "of required, requested, none"
    )
    file.write_text(re.sub(" # require.*", "", run.text(REFRESHER_TLS)) + f"log.dirs={tmp_path}/data\n")
    with running_broker(tmp_path / "broker", config=file):
        sample = run.text(REFRESHER_TLS_CLIENT)
        assert "offset 0" in java(tmp_path, f"localhost:{port}", sample)
        without = "\n".join(line for line in sample.splitlines() if "_KEY" not in line)
        assert "SslAuthenticationException" in java(tmp_path, f"localhost:{port}", without)


REFRESHER_SCRAM = """# Broker: SASL_SSL listener
listeners=SASL_SSL://broker1:9094
sasl.enabled.mechanisms=SCRAM-SHA-512
ssl.keystore.location=/var/ssl/private/broker1.keystore.jks
ssl.keystore.password=keystore-password
"""
REFRESHER_USER = r"""kafka-configs.sh --bootstrap-server broker1:9092 \
--alter --entity-type users --entity-name alice \
--add-config 'SCRAM-SHA-512=[iterations=8192,password=alice-secret]'
"""
REFRESHER_SCRAM_CLIENT = r"""
props.put(CommonClientConfigs.SECURITY_PROTOCOL_CONFIG, "SASL_SSL");
props.put(SaslConfigs.SASL_MECHANISM, "SCRAM-SHA-512");
props.put(SaslConfigs.SASL_JAAS_CONFIG,
"org.apache.kafka.common.security.scram.ScramLoginModule required " +
"username=\"alice\" password=\"alice-secret\";");
"""


@pytest.mark.parametrize("version", [NEW, OLD])
def test_scram_of_a_course(tmp_path: Path, version: str) -> None:
    """The command needs another listener, which the sample presupposes; the client an authority that it trusts."""
    port = free_port()
    private = {"/var/ssl/private": str(tmp_path), "broker1:9094": f"localhost:{port}"}
    run = Scripts(tmp_path, version, private)
    run(
        "keytool -genkeypair -keyalg RSA -validity 3 -alias own -dname CN=localhost -keystore broker1.keystore.jks "
        "-storepass keystore-password"
    )
    file = tmp_path / "server.properties"
    file.write_text(run.text(REFRESHER_SCRAM) + f"log.dirs={tmp_path}/data\n")
    listeners = {"listeners": f"SASL_SSL://localhost:{port},PLAINTEXT://localhost:0"}
    trusted = (
        f'props.put(SslConfigs.SSL_TRUSTSTORE_LOCATION_CONFIG, "{tmp_path}/broker1.keystore.jks");'
        'props.put(SslConfigs.SSL_TRUSTSTORE_PASSWORD_CONFIG, "keystore-password");'
    )
    with running_broker(tmp_path / "broker", listeners, config=file) as broker:
        of_admin = Scripts(tmp_path, version, {"broker1:9092": broker.listeners["PLAINTEXT"]})
        assert "SaslAuthenticationException" in java(
            tmp_path, f"localhost:{port}", REFRESHER_SCRAM_CLIENT + trusted
        )
        assert "Completed updating config for user alice." in of_admin(REFRESHER_USER)
        assert "offset 0" in java(tmp_path, f"localhost:{port}", REFRESHER_SCRAM_CLIENT + trusted)


REFRESHER_ACLS = [
    r"""kafka-acls.sh --bootstrap-server broker1:9092 \
--add \
--allow-principal User:alice \
--operation Write \
--operation Describe \
--topic orders""",
    r"""kafka-acls.sh --bootstrap-server broker1:9092 \
--add \
--allow-principal User:service-account \
--operation Read \
--operation Describe \
--topic orders""",
    r"""kafka-acls.sh --bootstrap-server broker1:9092 \
--add \
--allow-principal User:service-account \
--operation Read \
--group order-processing-group""",
    r"""kafka-acls.sh --bootstrap-server broker1:9092 \
--add \
--deny-principal User:bad-actor \
--operation All \
--topic '*'""",
]
REFRESHER_LIST = "kafka-acls.sh --bootstrap-server broker1:9092 --list --topic orders"


@pytest.mark.parametrize("version", [NEW, OLD])
def test_acls_of_a_course(tmp_path: Path, version: str) -> None:
    with running_broker(tmp_path / "broker", ACLS) as broker:
        run = Scripts(tmp_path, version, {"broker1:9092": broker.address})
        for command in REFRESHER_ACLS:
            run(command)
        told = run(REFRESHER_LIST)
    assert told.count("principal=User:alice") == 2 and told.count("principal=User:service-account") == 2
    # Those of all topics count for this one too, but are listed with their own name only.
    assert "bad-actor" not in told
    assert acls_of(broker.data) == {
        "ALLOW User:alice WRITE TOPIC orders *",
        "ALLOW User:alice DESCRIBE TOPIC orders *",
        "ALLOW User:service-account READ TOPIC orders *",
        "ALLOW User:service-account DESCRIBE TOPIC orders *",
        "ALLOW User:service-account READ GROUP order-processing-group *",
        "DENY User:bad-actor ALL TOPIC * *",
    }


OLD_BROKER = """ssl.keystore.location=/var/private/ssl/kafka.server.keystore.jks
ssl.keystore.password=test1234
ssl.key.password=test1234
ssl.truststore.location=/var/private/ssl/kafka.server.truststore.jks
ssl.truststore.password=test1234
ssl.keystore.type=JKS
ssl.truststore.type=JKS
"""
OLD_CLIENT = """security.protocol=SSL
ssl.truststore.location=/var/private/ssl/kafka.client.truststore.jks
ssl.truststore.password=test1234
"""
OLD_CLIENT_KEY = """ssl.keystore.location=/var/private/ssl/kafka.client.keystore.jks
ssl.keystore.password=test1234
ssl.key.password=test1234
"""


def test_tls_of_the_old_manual(tmp_path: Path) -> None:
    """Its script, its settings, and the console programs of the last Kafka that has --broker-list."""
    ports = free_port(), free_port()
    of_manual = {
        "/var/private/ssl/kafka.": f"{tmp_path}/",
        "localhost:9093": f"localhost:{ports[1]}",
        "host.name:port,SSL": f"localhost:{ports[0]},SSL",
        "host.name:port": f"localhost:{ports[1]}",
    }
    run = Scripts(tmp_path, OLD, of_manual)
    without = next(iter(MADE)).removesuffix(" -keyalg RSA")
    assert "-keyalg" in run(without, given=MADE[f"{without} -keyalg RSA"], status=1)
    make_keystores(run)
    make_keystore_of_client(run)
    listeners = run.text("listeners=PLAINTEXT://host.name:port,SSL://host.name:port\n")
    file = tmp_path / "server.properties"
    old_versions = "ssl.enabled.protocols=TLSv1.2,TLSv1.1,TLSv1\n"
    file.write_text(listeners + run.text(OLD_BROKER) + old_versions)
    assert why_it_does_not_start(tmp_path, file) == (
        "leafcuttr: ssl.enabled.protocols: TLSv1.1 is not spoken; allowed are TLSv1.2 and TLSv1.3"
    )
    inter_broker = "security.inter.broker.protocol=SSL\n"
    file.write_text(listeners + run.text(OLD_BROKER) + inter_broker + f"log.dirs={tmp_path}/data\n")
    config, write, read = _consoles(run)
    with running_broker(tmp_path / "broker", config=file):
        shown = run("openssl s_client -debug -connect localhost:9093 -tls1_2")
        assert "-----BEGIN CERTIFICATE-----" in shown and "CN = localhost" in shown
        run("openssl s_client -debug -connect localhost:9093 -tls1", status=1)
        config.write_text(run.text(OLD_CLIENT))
        run(write, given="tea\n")
        assert "tea" in run(read, "--from-beginning", "--max-messages", "1")
    with running_broker(tmp_path / "broker", {"ssl.client.auth": "required"}, config=file):
        run(write, given="milk\n")  # which ends with 0, and has lost it: the client has no certificate
        config.write_text(run.text(OLD_CLIENT + OLD_CLIENT_KEY))
        run(write, given="cake\n")
        assert "tea\ncake\n" in run(read, "--from-beginning", "--max-messages", "2")


def _consoles(run: Scripts) -> tuple[Path, str, str]:
    """The file that both programs of the manual read, and their commands."""
    producer = "--broker-list localhost:9093 --topic test --producer.config client-ssl.properties"
    consumer = "--bootstrap-server localhost:9093 --topic test --consumer.config client-ssl.properties"
    file = run.folder / "client-ssl.properties"
    return file, f"kafka-console-producer.sh {producer}", f"kafka-console-consumer.sh {consumer}"


def test_a_cluster_that_is_secured_in_steps(tmp_path: Path) -> None:
    """As the old manual has it: a port of TLS beside the open one, then the open one is closed. Records stay."""
    ports = free_port(), free_port(), free_port()
    run = Scripts(
        tmp_path, NEW, {f"broker1:909{at}": f"localhost:{port}" for at, port in enumerate(ports, 1)}
    )
    make_keystores(run)
    run = Scripts(tmp_path, NEW, {**run.instead, "/var/private/ssl/kafka.": f"{tmp_path}/"})
    client = tmp_path / "client-ssl.properties"
    client.write_text(run.text(OLD_CLIENT))
    file = tmp_path / "server.properties"
    inter_broker = "security.inter.broker.protocol=SSL\n"
    first = "listeners=PLAINTEXT://broker1:9091,SSL://broker1:9092\n"
    steps = [
        (first, "broker1:9091", ""),
        (first, "broker1:9092", "ssl"),
        (first + inter_broker, "broker1:9092", "ssl"),
        ("listeners=SSL://broker1:9092\n" + inter_broker, "broker1:9092", "ssl"),
    ]
    for number, (settings, address, how) in enumerate(steps):
        file.write_text(run.text(settings + OLD_BROKER) + f"log.dirs={tmp_path}/data\n")
        with running_broker(tmp_path / "broker", config=file) as broker:
            config = f" --command-config {client}" if how else ""
            run(
                f"kafka-console-producer.sh --bootstrap-server {address} --topic t{config}",
                given=f"record {number}\n",
            )
            at = f"--bootstrap-server {address} --topic t --from-beginning --max-messages {number + 1}"
            told = run(f"kafka-console-consumer.sh {at}{config}")
            assert all(f"record {each}\n" in told for each in range(number + 1))
            assert set(broker.listeners) == set(re.findall(r"([A-Z]+)://", settings))
    both = "listeners=PLAINTEXT://broker1:9091,SSL://broker1:9092,SASL_SSL://broker1:9093\n" + inter_broker
    file.write_text(
        run.text(both + OLD_BROKER) + f"sasl.enabled.mechanisms=SCRAM-SHA-512\nlog.dirs={tmp_path}/data\n"
    )
    with running_broker(tmp_path / "broker", config=file) as broker:
        assert set(broker.listeners) == {"PLAINTEXT", "SSL", "SASL_SSL"}


OLD_RIGHTS = [
    "--add --allow-principal User:Bob --allow-principal User:Alice --allow-host 198.51.100.0 "
    "--allow-host 198.51.100.1 --operation Read --operation Write --topic Test-topic",
    "--add --allow-principal User:* --allow-host * --deny-principal User:BadBob --deny-host 198.51.100.3 "
    "--operation Read --topic Test-topic",
    "--add --allow-principal User:Bob --producer --topic Test-topic",
    "--add --allow-principal User:Bob --consumer --topic test-topic --group Group-1",
]


@pytest.mark.parametrize("version", [NEW, OLD])
def test_acls_of_the_old_manual(tmp_path: Path, version: str) -> None:
    """With the address of the broker in the place of ZooKeeper's, and what a shell would make of `*` left out."""
    settings = {
        **ACLS,
        "super.users": "User:Bob;User:Alice;User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
    }
    with running_broker(tmp_path / "broker", settings) as broker:
        run = Scripts(tmp_path, version)
        acls = f"bin/kafka-acls.sh --bootstrap-server {broker.address} "
        for words in OLD_RIGHTS:
            run(acls + words)
        told = run(f"{acls}--list --topic Test-topic")
        assert "principal=User:BadBob, host=198.51.100.3, operation=READ, permissionType=DENY" in told
        assert "principal=User:*, host=*, operation=READ, permissionType=ALLOW" in told
        assert told.count("host=198.51.100.1") == 4
        run(acls + OLD_RIGHTS[0].replace("--add", "--remove --force"))
        assert "198.51.100.1" not in run(f"{acls}--list --topic Test-topic")
        run(acls + OLD_RIGHTS[2].replace("--add", "--remove --force"))
    assert acls_of(broker.data) == {
        "ALLOW User:* READ TOPIC Test-topic *",
        "DENY User:BadBob READ TOPIC Test-topic 198.51.100.3",
        "ALLOW User:Bob READ TOPIC test-topic *",
        "ALLOW User:Bob DESCRIBE TOPIC test-topic *",
        "ALLOW User:Bob READ GROUP Group-1 *",
    }


def test_what_the_old_manual_has_and_nobody_has_now(tmp_path: Path) -> None:
    """A class of Java stops the start with its name; what was for ZooKeeper is a warning."""
    file = tmp_path / "server.properties"
    file.write_text("principal.builder.class=CustomizedPrincipalBuilderClass\n")
    assert why_it_does_not_start(tmp_path, file) == (
        "leafcuttr: principal.builder.class=CustomizedPrincipalBuilderClass (server.properties:1): refused, "
        "because Java classes cannot be loaded"
    )
    for name in ("kafka.security.auth.SimpleAclAuthorizer", "kafka.security.authorizer.AclAuthorizer"):
        file.write_text(f"authorizer.class.name={name}\n")
        assert "allowed is org.apache.kafka.metadata.authorizer.StandardAuthorizer" in why_it_does_not_start(
            tmp_path, file
        )
    gone = ("zookeeper.set.acl=true", "quota.producer.default=10485760", "quota.consumer.default=10485760")
    file.write_text("\n".join(gone) + f"\nlisteners=PLAINTEXT://localhost:0\nlog.dirs={tmp_path}/data\n")
    with running_broker(tmp_path / "broker", config=file) as broker:
        for at, line in enumerate(gone, 1):
            name = line.partition("=")[0]
            assert f"WARNING {name} (server.properties:{at}) is a setting of Kafka before 4.0" in broker.log
