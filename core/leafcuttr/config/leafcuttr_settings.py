"""Settings that only LeafCuttr has. Those of bundled plugins (MQTT, HTTP, registry, forwarding) live with
them.
"""

from typing import Final

from leafcuttr.config import checks
from leafcuttr.config.setting import BOOLEAN, INT, LIST, LONG, PASSWORD, STRING, ConfigKey, Effect, Override

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    ConfigKey(
        "lc.isolated",
        BOOLEAN,
        True,
        "Run without replication: the high watermark is the end of the log and acks=all means on the log.",
        effect=Effect.NONE,
        reason="there is no replication, so false changes nothing but prints a warning",
    ),
    ConfigKey(
        "lc.listeners.open",
        STRING,
        "warn",
        (
            "What becomes of a listener that other machines reach and that requires no authentication: warn has a line "
            "in the log, refuse stops the start."
        ),
        choices=("warn", "refuse"),
    ),
    ConfigKey(
        "lc.log.min.free.bytes",
        LONG,
        64 * 1024 * 1024,
        "Refuse what clients produce when the disk has less free space than this, which is kept for the broker itself.",
        unit="bytes",
        minimum=0,
        dynamic=True,
    ),
    ConfigKey(
        "lc.log.sync.always",
        BOOLEAN,
        False,
        "Acknowledge a produce request only when its records are on the disk itself, for every topic.",
        dynamic=True,
        overridden_by=Override(
            "lc.log.sync.always",
            help=(
                "Acknowledge a produce request to this topic only when its records are on the disk itself."
            ),
        ),
    ),
    ConfigKey(
        "lc.metrics.enable",
        BOOLEAN,
        True,
        "Answer metrics and health checks over HTTP on lc.metrics.host and lc.metrics.port.",
    ),
    ConfigKey(
        "lc.metrics.host",
        STRING,
        "127.0.0.1",
        (
            "Where metrics and health checks are answered (see lc.metrics.auth); empty for every address of the "
            "machine."
        ),
    ),
    ConfigKey(
        "lc.metrics.auth",
        LIST,
        ("none",),
        "How clients of the metrics port may authenticate: basic (name and password of the broker's users), bearer (a "
        "token as OAUTHBEARER takes it), mtls (a certificate, with lc.metrics.ssl.client.auth), none (they need not); "
        "several with commas; health checks need none.",
        check=checks.metrics_auth,
    ),
    ConfigKey(
        "lc.metrics.port",
        INT,
        9404,
        (
            "The port of metrics and health checks; 0 takes any free one, and one that is taken is only a "
            "warning."
        ),
        minimum=0,
        maximum=65_535,
    ),
    ConfigKey(
        "lc.metrics.ssl.keystore.location",
        STRING,
        None,
        "A PEM file with the private key and its certificate chain; with it the metrics port speaks TLS only.",
    ),
    ConfigKey(
        "lc.metrics.ssl.keystore.type",
        STRING,
        "PEM",
        "The format of that file.",
        choices=("PEM",),
        effect=Effect.NONE,
        reason="the format is told by the content",
    ),
    ConfigKey(
        "lc.metrics.ssl.key.password",
        PASSWORD,
        None,
        "The password of the private key, if it is encrypted.",
    ),
    ConfigKey(
        "lc.metrics.ssl.truststore.location",
        STRING,
        None,
        "A PEM file with the certificates that sign those of clients.",
    ),
    ConfigKey(
        "lc.metrics.ssl.client.auth",
        STRING,
        "none",
        "Whether clients of the metrics port, those of health checks too, have to show a certificate.",
        choices=("required", "requested", "none"),
    ),
    ConfigKey(
        "lc.metrics.max.partitions",
        INT,
        10_000,
        "Partitions with metrics of their own; those of topics beyond it are summed under the label (other).",
        minimum=0,
    ),
    ConfigKey(
        "lc.metrics.max.group.partitions",
        INT,
        10_000,
        "Committed partitions, over all groups, with metrics of their own; groups beyond it are summed under the "
        "label (other).",
        minimum=0,
    ),
    ConfigKey(
        "lc.records.check",
        STRING,
        "ends",
        (
            "What is checked of the records of a batch before it is stored, for every topic: ends, that those of a "
            "batch that is not compressed end where the next begin, as many as the header says; full, as in Kafka also "
            "what is inside each one, compressed or not; off, nothing but the CRC."
        ),
        choices=("ends", "full", "off"),
        dynamic=True,
        overridden_by=Override(
            "lc.records.check",
            help=(
                "What is checked of the records of a batch before it is stored: ends, that those of a "
                "batch that is not compressed end where the next begin, as many as the header says; full,"
                " as in Kafka also what is inside each one, compressed or not; off, nothing but the CRC."
            ),
        ),
    ),
    ConfigKey(
        "lc.tls.reload.interval.ms",
        INT,
        10_000,
        (
            "How often the files of a listener's certificate, key and trusted certificates are checked; new "
            "connections use those that have changed. 0: never."
        ),
        unit="ms",
        minimum=0,
    ),
)
