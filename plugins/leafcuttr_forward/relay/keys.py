"""Every key of kaf-relay's configuration, in one table: what it may be, its default, and what it does here. The reader
of files and the page of keys go by it."""

from enum import Enum
from typing import Final, NamedTuple

from leafcuttr_forward.relay import durations


class Kind(Enum):
    """What a key may be. The value is how a message says so."""

    TEXT = "a text"
    SWITCH = "true or false"
    NUMBER = "a whole number"
    DURATION = durations.ALLOWED
    TEXTS = "a list of texts"


class RelayKey(NamedTuple):
    """One key of one section."""

    section: str
    """Of TOML; `sources` has one for each source, `filters` one for each name, the empty one is the top of the file."""
    name: str
    kind: Kind
    default: str | bool | int
    """As it would be written. An empty text: none."""
    here: str
    """What it does here, for the page: a sentence, with more after it where kaf-relay differs."""
    acts: bool = True
    """False: it is accepted, and has no effect; `here` says why."""
    choices: tuple[str, ...] = ()
    least: int | None = None

    @property
    def allowed(self) -> str:
        """What may be given, for a message."""
        if self.choices:
            return ", ".join(each or '""' for each in self.choices)
        if self.least is not None:
            return f"{self.kind.value} from {self.least} on"
        return self.kind.value


_TEXT, _SWITCH, _NUMBER, _DURATION = Kind.TEXT, Kind.SWITCH, Kind.NUMBER, Kind.DURATION
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MODES: Final = ("single", "failover")
_ENDLESS: Final = "-1: without end."


def _cluster(section: str, which: str) -> tuple[RelayKey, ...]:
    """Those that `[[sources]]` and `[target]` share."""
    return (
        RelayKey(
            section,
            "name",
            _TEXT,
            "",
            f"The name of {which} in lines, metrics and the status. Default: its first address.",
        ),
        RelayKey(
            section,
            "servers",
            Kind.TEXTS,
            "",
            f"Addresses of brokers of {which}, `host:port` each. Required.",
        ),
        RelayKey(
            section,
            "session_timeout",
            _DURATION,
            "6s",
            "How long a connection and its login may take, and one request.",
        ),
        RelayKey(section, "enable_auth", _SWITCH, False, "Log in by SASL, with the three keys below."),
        RelayKey(
            section,
            "sasl_mechanism",
            _TEXT,
            "",
            "The mechanism of SASL. kaf-relay logs in without one where it is none of these; here that is a "
            "fault.",
            choices=(*MECHANISMS, ""),
        ),
        RelayKey(section, "username", _TEXT, "", "The user."),
        RelayKey(section, "password", _TEXT, "", "The password."),
        RelayKey(
            section,
            "enable_tls",
            _SWITCH,
            False,
            "Speak TLS. Without the three paths below the authorities of the system are trusted.",
        ),
        RelayKey(section, "client_key_path", _TEXT, "", "The private key of the client's certificate, PEM."),
        RelayKey(
            section,
            "client_cert_path",
            _TEXT,
            "",
            "The client's certificate, PEM. It needs the key, and the key needs it.",
        ),
        RelayKey(
            section,
            "ca_cert_path",
            _TEXT,
            "",
            "Certificates of the authorities to trust, PEM. kaf-relay needs all three paths; here this one may "
            "stand alone.",
        ),
        RelayKey(
            section,
            "enable_log",
            _SWITCH,
            False,
            "Accepted: what the client does is logged at `log_level` debug.",
            acts=False,
        ),
    )


def _retries(section: str, which: str) -> tuple[RelayKey, ...]:
    return (
        RelayKey(
            section,
            "max_retries",
            _NUMBER,
            -1,
            f"How often in a row {which} is tried in vain before the relay ends with status 1. {_ENDLESS}",
            least=-1,
        ),
        RelayKey(
            section,
            "backoff_enable",
            _SWITCH,
            False,
            "The pause after a try in vain doubles from `backoff_min` to `backoff_max`, a fifth more or less by "
            "chance. Without it the pause is a second.",
        ),
        RelayKey(section, "backoff_min", _DURATION, "1s", "The first pause."),
        RelayKey(section, "backoff_max", _DURATION, "10s", "The longest pause."),
    )


KEYS: Final[tuple[RelayKey, ...]] = (
    RelayKey("", "mode", _TEXT, "single", "As `--mode`, which goes before it.", choices=MODES),
    RelayKey("", "stop-at-end", _SWITCH, False, "As `--stop-at-end`, which goes before it."),
    RelayKey(
        "app",
        "log_level",
        _TEXT,
        "info",
        "What is logged on standard error.",
        choices=("debug", "info", "warn", "error"),
    ),
    RelayKey(
        "app",
        "metrics_server_addr",
        _TEXT,
        ":7081",
        "Where `/metrics` and the status are answered; without a host, on all addresses. Empty: nowhere.",
    ),
    RelayKey(
        "topics",
        "SOURCE",
        _TEXT,
        "",
        "The target topic of a source topic, `topic` or `topic:partition`. Without a partition each record goes "
        "to the partition that it had at the source; with one all go there. `[topics]` and `[[topics]]` are the "
        "same.",
    ),
    RelayKey(
        "source_pool",
        "initial_offset",
        _TEXT,
        "start",
        "Accepted: kaf-relay does not read it any longer. Where a flow begins says its position, and without one"
        " the end of the target's partition.",
        acts=False,
    ),
    RelayKey(
        "source_pool",
        "healthcheck_interval",
        _DURATION,
        "3s",
        "How often each source is probed for its health and its end offsets.",
    ),
    RelayKey(
        "source_pool",
        "offset_lag_threshold",
        _NUMBER,
        1000,
        "Records by which the source that is read may lag behind another one, in the sum of the end offsets over"
        " all topics. Beyond it the relay switches to the one that is ahead.",
        least=0,
    ),
    *_retries("source_pool", "every source"),
    RelayKey(
        "source_pool",
        "request_timeout",
        _DURATION,
        "100ms",
        "How long the answer to a probe may take over a connection that stands. A source that fails two probes "
        "in a row, the second at once after the first, is unhealthy.",
    ),
    RelayKey(
        "source_pool",
        "randomize_initial",
        _SWITCH,
        False,
        "Begin with a source that is chosen by chance. Without it the first that is healthy is read.",
    ),
    *_cluster("sources", "the source"),
    RelayKey(
        "sources",
        "max_wait_time",
        _DURATION,
        "10ms",
        "Accepted: kaf-relay does not read it any longer. A source answers as soon as it has records.",
        acts=False,
    ),
    RelayKey(
        "sources",
        "max_failovers",
        _NUMBER,
        -1,
        "Switches of source, in all, before the relay ends with status 1: the smallest of all sources counts. "
        f"kaf-relay does not read it any longer. {_ENDLESS}",
        least=-1,
    ),
    *_cluster("target", "the target"),
    *_retries("target", "the target"),
    RelayKey(
        "target",
        "request_timeout",
        _DURATION,
        "100ms",
        "Accepted: an answer of the target may take `session_timeout`.",
        acts=False,
    ),
    RelayKey(
        "target", "enable_idempotency", _SWITCH, True, "Accepted: producing is always idempotent.", acts=False
    ),
    RelayKey(
        "target",
        "commit_ack_type",
        _TEXT,
        "cluster",
        "Accepted: every record is acknowledged by all replicas in sync, as with `cluster`.",
        acts=False,
        choices=("tcp", "leader", "cluster", "default", ""),
    ),
    RelayKey(
        "target",
        "flush_frequency",
        _DURATION,
        "20ms",
        "Accepted: batches are produced as they come.",
        acts=False,
    ),
    RelayKey(
        "target",
        "flush_batch_size",
        _NUMBER,
        1000,
        "Accepted: batches keep the size that they have at the source.",
        acts=False,
    ),
    RelayKey(
        "target",
        "batch_size",
        _NUMBER,
        1000,
        "Accepted: batches keep the size that they have at the source.",
        acts=False,
    ),
    RelayKey(
        "target",
        "buffer_size",
        _NUMBER,
        100000,
        "Accepted: what is read and not yet produced is bounded in bytes, by `--buffer`.",
        acts=False,
    ),
    RelayKey(
        "target",
        "max_message_bytes",
        _NUMBER,
        0,
        "Accepted: the target's own `max.message.bytes` is what counts.",
        acts=False,
    ),
    RelayKey(
        "target",
        "compression",
        _TEXT,
        "none",
        "Accepted: batches keep the compression that they have at the source.",
        acts=False,
        choices=("gzip", "snappy", "lz4", "zstd", "none", ""),
    ),
    RelayKey(
        "filters",
        "enabled",
        _SWITCH,
        False,
        "Whether records pass through the filter; `--filter NAME` switches it on too.",
    ),
    RelayKey(
        "filters",
        "path",
        _TEXT,
        "",
        "The filter: a Python file, `module:function`, or the name of a record filter. kaf-relay's Go plugins "
        "cannot be loaded: a line says so, and the relay does not start.",
    ),
    RelayKey("filters", "config", _TEXT, "", "A text that the filter's function gets."),
)
"""In the order of kaf-relay's sample."""

SECTIONS: Final[tuple[str, ...]] = tuple(dict.fromkeys(key.section for key in KEYS))
BY_NAME: Final = {(key.section, key.name): key for key in KEYS}


def keys_of(section: str) -> dict[str, RelayKey]:
    """By name."""
    return {key.name: key for key in KEYS if key.section == section}
