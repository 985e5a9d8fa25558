"""Every key that MirrorMaker 2 has in its file, with what it does here; the page is made of these tables.

`KEYS` are those of MirrorMaker and its connectors, and ours; `worker_keys` has those of Connect's workers, in which
MirrorMaker runs, `client_keys` those of Kafka's clients. Types and defaults are those of Kafka 4.3.1, which a test
compares with its classes. The module is long because it is one table.
"""

from enum import Enum, Flag, auto
from typing import Final, NamedTuple

from leafcuttr_forward.mm2.policy import DEFAULT_POLICY, IDENTITY_POLICY

CONFIG_EXCLUDE: Final = (
    "follower.replication.throttled.replicas, leader.replication.throttled.replicas, "
    "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, "
    "log.message.timestamp.after.max.ms, message.timestamp.type, unclean.leader.election.enable, "
    "min.insync.replicas"
)


class Kind(Enum):
    """The type of a value, by Kafka's name for it."""

    BOOLEAN = "boolean"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    PASSWORD = "password"
    LIST = "list"
    CLASS = "class"


class Use(Enum):
    """What becomes of a key."""

    USED = "used"
    IGNORED = "no meaning here"
    """It is accepted with a line, and `what` says why it has no meaning."""
    REFUSED = "only its default"
    """Another value would change what is copied, and cannot be carried out."""


class Where(Flag):
    """In front of what a key may stand."""

    TOP = auto()
    """Nothing: it holds for all."""
    CLUSTER = auto()
    """`ALIAS.`"""
    FLOW = auto()
    """`SOURCE->TARGET.`"""


_TOP_OR_FLOW: Final = Where.TOP | Where.FLOW


class MirrorKey(NamedTuple):
    """One key. `what` says what it does, or why it has no meaning."""

    name: str
    kind: Kind
    default: str | None
    """As it would be written; None: it has none."""
    what: str
    use: Use = Use.USED
    where: Where = _TOP_OR_FLOW
    choices: tuple[str, ...] = ()
    minimum: int | None = None


_JAVA: Final = "It is a setting of the Java process that MirrorMaker is."
_ONE_PROCESS: Final = "One process copies all; there are no tasks to distribute."
_CONVERTER: Final = "Records are copied as bytes: there is nothing to convert."
_CLASS: Final = "Classes of Java cannot be run."
_REST: Final = "There is no REST interface of Connect; see `leafcuttr flows`."


def _ignored(name: str, kind: Kind, default: str | None, why: str, where: Where = _TOP_OR_FLOW) -> MirrorKey:
    return MirrorKey(name, kind, default, why, Use.IGNORED, where)


KEYS: Final = (
    MirrorKey("clusters", Kind.LIST, None, "The aliases of the clusters.", where=Where.TOP),
    MirrorKey("enabled", Kind.BOOLEAN, "false", "Whether the flow copies its topics.", where=Where.FLOW),
    MirrorKey(
        "topics",
        Kind.LIST,
        ".*",
        "Regular expressions in Java's syntax, separated by commas: topics that are copied.",
    ),
    MirrorKey(
        "topics.exclude",
        Kind.LIST,
        r"mm2.*\.internal, .*\.replica, __.*",
        "Those that are not, also where `topics` has them. Topics of Kafka, of Connect and of MirrorMaker itself are "
        "never copied.",
    ),
    MirrorKey(
        "groups", Kind.LIST, ".*", "Regular expressions: consumer groups whose positions are translated."
    ),
    MirrorKey(
        "groups.exclude",
        Kind.LIST,
        "console-consumer-.*, connect-.*, __.*",
        "Those that are not. Groups of flows (`leafcuttr-...`) never are.",
    ),
    MirrorKey(
        "replication.policy.class",
        Kind.CLASS,
        DEFAULT_POLICY,
        "How topics are called at the target: by default with the source's alias before their names, or as at the "
        f"source (`{IDENTITY_POLICY}`). Identity in a circle over the same topics is refused: it would never end.",
        choices=(DEFAULT_POLICY, IDENTITY_POLICY),
    ),
    MirrorKey("replication.policy.separator", Kind.STRING, ".", "What stands between alias and name."),
    MirrorKey(
        "replication.policy.internal.topic.separator.enabled",
        Kind.BOOLEAN,
        "true",
        "Whether the topics for checkpoints and offset syncs have that separator too.",
    ),
    MirrorKey(
        "replication.factor",
        Kind.INT,
        "2",
        "Of topics that are created at the target. A target with fewer brokers takes as many as it has, with a line.",
        minimum=-1,
    ),
    MirrorKey(
        "refresh.topics.enabled", Kind.BOOLEAN, "true", "Whether new topics and partitions are looked for."
    ),
    MirrorKey("refresh.topics.interval.seconds", Kind.LONG, "600", "How often, in seconds.", minimum=1),
    MirrorKey(
        "sync.topic.configs.enabled",
        Kind.BOOLEAN,
        "true",
        "Whether topics at the target get the settings of those at the source, at their creation and at each refresh "
        "of the topics.",
    ),
    _ignored(
        "sync.topic.configs.interval.seconds",
        Kind.LONG,
        "600",
        "Settings are compared at each refresh of the topics (`refresh.topics.interval.seconds`).",
    ),
    MirrorKey(
        "config.properties.exclude",
        Kind.LIST,
        CONFIG_EXCLUDE,
        "Regular expressions: settings of topics that are not copied. Those of LeafCuttr (`lc.`) never are.",
    ),
    MirrorKey(
        "use.defaults.from",
        Kind.STRING,
        "target",
        "Whose default a setting has at the target that the topic does not have itself. The defaults of the source are "
        "not copied.",
        Use.REFUSED,
        choices=("target",),
    ),
    _ignored(
        "sync.topic.acls.enabled",
        Kind.BOOLEAN,
        "true",
        "ACLs are not copied: LeafCuttr has none yet, and those of a target are its own.",
    ),
    _ignored("sync.topic.acls.interval.seconds", Kind.LONG, "600", "ACLs are not copied."),
    MirrorKey(
        "emit.heartbeats.enabled",
        Kind.BOOLEAN,
        "true",
        "Whether heartbeats of the pair are written at its target. As in MirrorMaker, those of `B->A` are written at A "
        "also where `B->A.enabled` is false: they are what shows at B that `A->B` works.",
    ),
    MirrorKey("emit.heartbeats.interval.seconds", Kind.LONG, "1", "How often, in seconds.", minimum=1),
    MirrorKey(
        "heartbeats.topic.replication.factor",
        Kind.SHORT,
        "3",
        "Of the topic `heartbeats`; at most one for each broker of the cluster.",
        minimum=-1,
    ),
    MirrorKey(
        "heartbeats.replication.enabled",
        Kind.BOOLEAN,
        "true",
        "Whether heartbeats are copied although `topics` does not have them.",
    ),
    MirrorKey(
        "emit.checkpoints.enabled",
        Kind.BOOLEAN,
        "true",
        "Whether translated positions of groups are written to `SOURCE.checkpoints.internal` at the target, where "
        "`RemoteClusterUtils` finds them.",
    ),
    MirrorKey("emit.checkpoints.interval.seconds", Kind.LONG, "60", "How often, in seconds.", minimum=1),
    MirrorKey(
        "checkpoints.topic.replication.factor",
        Kind.SHORT,
        "3",
        "Of that topic; at most one for each broker of the target.",
        minimum=-1,
    ),
    MirrorKey("refresh.groups.enabled", Kind.BOOLEAN, "true", "Whether new groups are looked for."),
    MirrorKey("refresh.groups.interval.seconds", Kind.LONG, "600", "How often, in seconds.", minimum=1),
    MirrorKey(
        "sync.group.offsets.enabled",
        Kind.BOOLEAN,
        "false",
        "Whether translated positions are committed at the target too, for groups that have no members there and are "
        "not further already.",
    ),
    MirrorKey("sync.group.offsets.interval.seconds", Kind.LONG, "60", "How often, in seconds.", minimum=1),
    MirrorKey(
        "emit.offset-syncs.enabled",
        Kind.BOOLEAN,
        "true",
        "Whether is written which offset at the source is which at the target. Checkpoints need it.",
    ),
    MirrorKey(
        "offset-syncs.topic.location",
        Kind.STRING,
        "source",
        "Where: the topic `mm2-offset-syncs.TARGET.internal` at the source, or `mm2-offset-syncs.SOURCE.internal` at "
        "the target.",
        choices=("source", "target"),
    ),
    MirrorKey(
        "offset-syncs.topic.replication.factor",
        Kind.SHORT,
        "3",
        "Of that topic; at most one for each broker of its cluster.",
        minimum=-1,
    ),
    MirrorKey(
        "offset.lag.max",
        Kind.LONG,
        "100",
        "So many records are copied at most until the next such offset is written; fewer once a second.",
        minimum=0,
    ),
    _ignored("admin.timeout.ms", Kind.LONG, "60000", "Each request has `request.timeout.ms`."),
    _ignored("consumer.poll.timeout.ms", Kind.LONG, "1000", "Records are read as they come."),
    MirrorKey(
        "topic.filter.class",
        Kind.CLASS,
        "org.apache.kafka.connect.mirror.DefaultTopicFilter",
        f"{_CLASS} The default is `topics` and `topics.exclude`.",
        Use.REFUSED,
    ),
    MirrorKey(
        "group.filter.class",
        Kind.CLASS,
        "org.apache.kafka.connect.mirror.DefaultGroupFilter",
        f"{_CLASS} The default is `groups` and `groups.exclude`.",
        Use.REFUSED,
    ),
    MirrorKey(
        "config.property.filter.class",
        Kind.CLASS,
        "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
        f"{_CLASS} The default is `config.properties.exclude`.",
        Use.REFUSED,
    ),
    MirrorKey(
        "forwarding.admin.class",
        Kind.CLASS,
        "org.apache.kafka.clients.admin.ForwardingAdmin",
        _CLASS,
        Use.REFUSED,
    ),
    MirrorKey(
        "transforms",
        Kind.LIST,
        "",
        f"{_CLASS} Records are changed by filters: see `lc.filters`.",
        Use.REFUSED,
    ),
    _ignored("predicates", Kind.LIST, "", "They belong to transforms, which are not taken."),
    _ignored("source.cluster.alias", Kind.STRING, None, "The pair in front of a key is the alias."),
    _ignored("target.cluster.alias", Kind.STRING, "target", "The pair in front of a key is the alias."),
    _ignored("name", Kind.STRING, None, "A flow is called `SOURCE->TARGET`."),
    _ignored("connector.class", Kind.STRING, None, _JAVA),
    _ignored("connector.plugin.version", Kind.STRING, None, _JAVA),
    _ignored("tasks.max", Kind.INT, "1", _ONE_PROCESS),
    _ignored("tasks.max.enforce", Kind.BOOLEAN, "true", _ONE_PROCESS),
    _ignored("key.converter", Kind.CLASS, None, _CONVERTER, Where.TOP | Where.CLUSTER | Where.FLOW),
    _ignored("key.converter.plugin.version", Kind.STRING, None, _CONVERTER),
    _ignored("value.converter", Kind.CLASS, None, _CONVERTER, Where.TOP | Where.CLUSTER | Where.FLOW),
    _ignored("value.converter.plugin.version", Kind.STRING, None, _CONVERTER),
    _ignored("header.converter", Kind.CLASS, None, _CONVERTER, Where.TOP | Where.CLUSTER | Where.FLOW),
    _ignored("header.converter.plugin.version", Kind.STRING, None, _CONVERTER),
    _ignored("config.action.reload", Kind.STRING, "restart", "The file is read at the start."),
    _ignored("errors.retry.timeout", Kind.LONG, "0", "What passes is tried again for as long as it takes."),
    _ignored(
        "errors.retry.delay.max.ms", Kind.LONG, "60000", "Pauses grow up to `reconnect.backoff.max.ms`."
    ),
    _ignored(
        "errors.tolerance",
        Kind.STRING,
        "none",
        "A record that the target refuses stops its flow, or goes to `lc.dead.letter.topic`.",
    ),
    _ignored("errors.log.enable", Kind.BOOLEAN, "false", "Each error is logged."),
    _ignored("errors.log.include.messages", Kind.BOOLEAN, "false", "Records are never logged."),
    _ignored("metric.reporters", Kind.LIST, "org.apache.kafka.common.metrics.JmxReporter", _JAVA),
    _ignored(
        "metric.names.formats",
        Kind.LIST,
        "legacy",
        "Metrics are those of `/metrics`, and have names of their own.",
    ),
    _ignored(
        "exactly.once.support",
        Kind.STRING,
        "requested",
        "Flows are exactly once where the target has transactions; see `exactly.once.source.support`.",
    ),
    _ignored(
        "transaction.boundary", Kind.STRING, "poll", "A transaction ends when there is nothing to read."
    ),
    _ignored("transaction.boundary.interval.ms", Kind.LONG, None, "As `transaction.boundary`."),
    _ignored("topic.creation.groups", Kind.LIST, "", "Topics are created as those at the source."),
    _ignored("offsets.storage.topic", Kind.STRING, None, "Positions are in `leafcuttr-flows` at the target."),
    MirrorKey(
        "config.providers",
        Kind.LIST,
        "",
        "Names of providers; `${NAME:PATH:KEY}` in a value is what the provider has there. "
        "`config.providers.NAME.class` is Kafka's FileConfigProvider, DirectoryConfigProvider or EnvVarConfigProvider.",
        where=Where.TOP,
    ),
    _ignored("dedicated.mode.enable.internal.rest", Kind.BOOLEAN, "false", _REST, Where.TOP),
    _ignored(
        "cluster.name",
        Kind.STRING,
        None,
        "It is no key of MirrorMaker's; files of LeafCuttr's demo have it.",
        Where.TOP,
    ),
    # Ours
    MirrorKey(
        "lc.filters",
        Kind.LIST,
        "",
        "Ours. Names of record filters, in their order, that each record passes. Records are decoded then.",
    ),
    MirrorKey(
        "lc.dead.letter.topic",
        Kind.STRING,
        None,
        "Ours. The topic at the target for records that it refuses. Without one the flow stops at such a record.",
    ),
    MirrorKey(
        "lc.throttle.bytes.per.second",
        Kind.LONG,
        None,
        "Ours. How much a flow copies in a second at most.",
        minimum=1,
    ),
    MirrorKey(
        "lc.buffer.bytes",
        Kind.LONG,
        str(32 << 20),
        "Ours. How much a flow has read at most and not yet written: what a slow target costs of memory.",
        minimum=1 << 20,
    ),
    MirrorKey(
        "lc.on.deleted",
        Kind.STRING,
        "wait",
        "Ours. What is done about a topic of the source that is gone: `wait` for it, `continue` without it, or `stop`.",
        choices=("continue", "wait", "stop"),
    ),
    MirrorKey(
        "lc.on.recreated",
        Kind.STRING,
        "continue",
        "Ours. About one that was deleted and created anew: `continue` copies the new one from its begin.",
        choices=("continue", "wait", "stop"),
    ),
    MirrorKey(
        "lc.on.truncated",
        Kind.STRING,
        "continue",
        "Ours. About a log that ends before the position: `continue` goes on at its end.",
        choices=("continue", "wait", "stop"),
    ),
    MirrorKey(
        "lc.on.expired",
        Kind.STRING,
        "continue",
        "Ours. About a log that begins behind the position: `continue` goes on at its begin.",
        choices=("continue", "wait", "stop"),
    ),
)
"""In the order of the page."""

EXACTLY_ONCE: Final = MirrorKey(
    "exactly.once.source.support",
    Kind.STRING,
    "disabled",
    "For `TARGET.`, also for a flow or for all: `disabled` makes flows to that cluster at least once. Without the key "
    "they are exactly once here, other than in MirrorMaker, where the target has transactions.",
    where=Where.TOP | Where.CLUSTER | Where.FLOW,
    choices=("disabled", "enabled", "preparing"),
)
