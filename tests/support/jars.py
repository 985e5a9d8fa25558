"""Where Apache Kafka's jars are, for tests that need a real Kafka or one of its Java tools.

Maven fetches a version once into ~/.cache/kafka-peer-VERSION; nothing of Kafka lies in this repository.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>peer</groupId><artifactId>peer</artifactId><version>1</version><dependencies>
{dependencies}
</dependencies></project>
"""
DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
)
TESTS = "<classifier>test</classifier>"
ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
LOG4J2 = """Configuration:
  status: warn
  Appenders: {Console: {name: C, target: SYSTEM_ERR, PatternLayout: {pattern: "%d %p %m%n"}}}
  Loggers: {Root: {level: warn, AppenderRef: {ref: C}}}
"""

# Of Kafka before 4, which has Log4j 1 in the form of reload4j.
LOG4J = """log4j.rootLogger=WARN, C
log4j.appender.C=org.apache.log4j.ConsoleAppender
log4j.appender.C.Target=System.err
log4j.appender.C.layout=org.apache.log4j.PatternLayout
log4j.appender.C.layout.ConversionPattern=%d %p %m%n
"""


def missing() -> str | None:
    """Why no jar of Kafka can run here, or None."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed: no real Apache Kafka here"
    return None


def cache(name: str) -> Path:
    """A folder that outlives the tests: what is fetched or built once."""
    return Path(os.environ.get("LEAFCUTTR_TEST_CACHE", Path.home() / ".cache")) / name


def _fetch(folder: Path, jar: str, wanted: list[tuple[str, str, str, str]]) -> None:
    """Fetch these (group, artifact, version, more) and what they need into `libs/`, unless `jar` is there. Raises
    RuntimeError.

    Tests run in several processes: one fetches, and `libs/` is there when all of it is.
    """
    libs = folder / "libs"
    if (libs / jar).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (libs / jar).exists():
            return
        (folder / "pom.xml").write_text(
            POM.format(dependencies="\n".join(DEPENDENCY.format(*one) for one in wanted))
        )
        shutil.rmtree(folder / "libs.new", ignore_errors=True)
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs.new"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
        if done.returncode:
            print(done.stdout, done.stderr, file=sys.stderr)
            raise RuntimeError(f"Maven could not fetch {wanted[0]}: {done.stdout[-500:]}")
        shutil.rmtree(libs, ignore_errors=True)
        (folder / "libs.new").rename(libs)


def _log_settings(folder: Path) -> None:
    """In place at once: another process may be about to read them."""
    for name, text in (("log4j2.yaml", LOG4J2), ("log4j.properties", LOG4J)):
        settings = folder / name
        if not settings.exists():
            beside = folder / f"{name}.{os.getpid()}"
            beside.write_text(text)
            beside.rename(settings)


def home(version: str) -> Path:
    """The folder with `libs/` of that version, fetched first if need be. Raises RuntimeError with Maven's words."""
    folder = cache(f"kafka-peer-{version}")
    scala = "2.12" if version.startswith("2.1.") else "2.13"
    wanted = [
        ("org.apache.kafka", f"kafka_{scala}", version, ""),
        ("org.apache.kafka", "kafka-tools", version, ""),
        ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4", ""),
    ]
    _fetch(folder, f"kafka-clients-{version}.jar", wanted)
    _log_settings(folder)
    return folder


def streams(version: str) -> Path:
    """The folder with `libs/` of Kafka Streams, as `home`."""
    folder = cache(f"kafka-streams-{version}")
    _fetch(folder, f"kafka-streams-{version}.jar", [("org.apache.kafka", "kafka-streams", version, "")])
    return folder


def streams_tests(version: str) -> Path:
    """The folder with `libs/` of the programs with which Kafka Streams is tested, as `home`."""
    folder = cache(f"kafka-streams-tests-{version}")
    wanted = [
        ("org.apache.kafka", "kafka-streams", version, ""),
        ("org.apache.kafka", "kafka-streams", version, TESTS),
        ("org.apache.kafka", "kafka-clients", version, TESTS),
        ("org.junit.jupiter", "junit-jupiter-api", "5.13.1", ""),
        ("org.hamcrest", "hamcrest", "3.0", ""),
    ]
    _fetch(folder, f"kafka-streams-{version}-test.jar", wanted)
    return folder


def streams_driver(version: str) -> Path:
    """The folder with `libs/` of Kafka Streams and the driver that runs it without a broker, as `home`."""
    folder = cache(f"kafka-streams-driver-{version}")
    wanted = [("org.apache.kafka", "kafka-streams-test-utils", version, "")]
    _fetch(folder, f"kafka-streams-test-utils-{version}.jar", wanted)
    return folder


def connect(version: str) -> Path:
    """The folder with `libs/` of Kafka Connect and its file connectors, as `home`."""
    folder = cache(f"kafka-connect-{version}")
    kafka = [("org.apache.kafka", name, version, "") for name in ("connect-runtime", "connect-file")]
    # Connect 3.9 brings a binding of its own for slf4j.
    logging = (
        [] if version.startswith("3.") else [("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4", "")]
    )
    _fetch(folder, f"connect-file-{version}.jar", [*kafka, *logging])
    _log_settings(folder)
    return folder


def mirror(version: str) -> Path:
    """The folder with `libs/` of MirrorMaker 2, which brings Connect along. Raises RuntimeError with Maven's words."""
    folder = cache(f"kafka-mirror-{version}")
    _fetch(folder, f"connect-mirror-{version}.jar", [("org.apache.kafka", "connect-mirror", version, "")])
    _log_settings(folder)
    return folder


def spark(version: str, kafka: str) -> list[Path]:
    """The jars of Spark's Kafka connector: what it needs beside those that pyspark has, with clients of `kafka`."""
    folder = cache(f"spark-kafka-{version}")
    wanted = [
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", version, ALONE),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", version, ALONE),
        ("org.apache.kafka", "kafka-clients", kafka, ALONE),
        ("org.apache.commons", "commons-pool2", "2.12.0", ALONE),
    ]
    _fetch(folder, f"spark-sql-kafka-0-10_2.13-{version}.jar", wanted)
    return sorted((folder / "libs").glob("*.jar"))


def mini_yarn(version: str, *arguments: str) -> list[str]:
    """The command line that runs a source file on Hadoop's YARN for tests, of that version."""
    folder = cache(f"hadoop-mini-yarn-{version}")
    wanted = [
        ("org.apache.hadoop", "hadoop-client-minicluster", version, ""),
        ("org.apache.hadoop", "hadoop-client-runtime", version, ""),
        # What it needs and does not say.
        ("org.junit.jupiter", "junit-jupiter-api", "5.13.1", ""),
        ("org.mockito", "mockito-core", "4.11.0", ""),
        ("org.bouncycastle", "bcprov-jdk18on", "1.78.1", ""),
        ("org.bouncycastle", "bcpkix-jdk18on", "1.78.1", ""),
        ("org.slf4j", "slf4j-reload4j", "1.7.36", ""),
    ]
    _fetch(folder, f"hadoop-client-minicluster-{version}.jar", wanted)
    options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return ["java", *options, "-cp", f"{folder}/libs/*", *arguments]


def hivemq(version: str, *arguments: str) -> list[str]:
    """The command line that runs a source file on HiveMQ's MQTT client of that version."""
    folder = cache(f"hivemq-mqtt-client-{version}")
    _fetch(folder, f"hivemq-mqtt-client-{version}.jar", [("com.hivemq", "hivemq-mqtt-client", version, "")])
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return ["java", *options, "-cp", f"{folder}/libs/*", *arguments]


def java(version: str, *arguments: str, heap: str = "256m", more: Path | None = None) -> list[str]:
    """The command line that runs a class of that version: `java("4.3.1", "kafka.Kafka", "server.properties")`.

    The first argument may be a source file. `more` is a further folder of jars.
    """
    folder = home(version)
    options = [f"-Xmx{heap}", f"-Dlog4j2.configurationFile={folder}/log4j2.yaml", "-XX:+UseSerialGC"]
    if version < "4":
        options.append(f"-Dlog4j.configuration=file:{folder}/log4j.properties")
    path = f"{folder}/libs/*" if more is None else f"{folder}/libs/*:{more}/*"
    return ["java", *options, "-XX:TieredStopAtLevel=1", "-cp", path, *arguments]
