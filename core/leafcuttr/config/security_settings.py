"""Broker settings of authorization, policies and principals."""

from typing import Final

from leafcuttr.config import checks
from leafcuttr.config.setting import BOOLEAN, CLASS, INT, LIST, LONG, PASSWORD, STRING, ConfigKey, Effect

NONE: Final = Effect.NONE
REFUSED: Final = Effect.REFUSED

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    ConfigKey(
        "alter.config.policy.class.name",
        CLASS,
        None,
        "The class that checks changes of settings.",
        effect=REFUSED,
        reason="Java classes cannot be loaded, and settings would be changed unchecked",
    ),
    ConfigKey(
        "allow.everyone.if.no.acl.found",
        BOOLEAN,
        False,
        "With an authorizer, whether every client may do everything on a resource for which there is no ACL at all.",
    ),
    ConfigKey(
        "authorizer.class.name",
        STRING,
        "",
        (
            "The class that decides which principal may do what, of which Kafka's StandardAuthorizer is here; empty "
            "lets every client do everything."
        ),
        check=checks.authorizer,
    ),
    ConfigKey(
        "client.quota.callback.class",
        CLASS,
        None,
        "The class that computes client quotas.",
        effect=REFUSED,
        reason="Java classes cannot be loaded",
    ),
    ConfigKey(
        "config.providers",
        LIST,
        (),
        "Names of what looks values up elsewhere: config.providers.<name>.class is Kafka's FileConfigProvider, "
        "DirectoryConfigProvider or EnvVarConfigProvider.",
        dynamic=True,
    ),
    ConfigKey(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        "How long a connection that failed to authenticate is kept waiting.",
        unit="ms",
        minimum=0,
    ),
    ConfigKey(
        "connections.max.reauth.ms",
        LONG,
        0,
        "When a client has to authenticate again; 0 for never.",
        unit="ms",
    ),
    ConfigKey(
        "create.topic.policy.class.name",
        CLASS,
        None,
        "The class that checks new topics.",
        effect=REFUSED,
        reason="Java classes cannot be loaded, and topics would be created unchecked",
    ),
    ConfigKey(
        "delegation.token.expiry.check.interval.ms",
        LONG,
        3_600_000,
        "How often expired delegation tokens are deleted.",
        unit="ms",
        minimum=1,
    ),
    ConfigKey(
        "delegation.token.expiry.time.ms",
        LONG,
        86_400_000,
        "How long a delegation token is valid if it is not renewed.",
        unit="ms",
        minimum=1,
    ),
    ConfigKey(
        "delegation.token.max.lifetime.ms",
        LONG,
        604_800_000,
        "How long a delegation token can be renewed.",
        unit="ms",
        minimum=1,
    ),
    ConfigKey(
        "delegation.token.secret.key",
        PASSWORD,
        None,
        "The secret that delegation tokens are signed with; without it there are none.",
    ),
    ConfigKey(
        "lc.audit.log",
        STRING,
        "denied",
        (
            "With an authorizer, which of its decisions are written to the log as lines of JSON: denied, all or off."
        ),
        choices=("denied", "all", "off"),
    ),
    ConfigKey(
        "lc.authorizer",
        STRING,
        "",
        (
            "The authorizer of a plugin that is asked what a client may do, before the ACLs if authorizer.class.name "
            "is set too; empty: none."
        ),
    ),
    ConfigKey(
        "lc.sasl.mechanisms",
        LIST,
        (),
        (
            "SASL mechanisms of plugins that listeners with SASL offer beside those of sasl.enabled.mechanisms, whose "
            "default counts without this only."
        ),
    ),
    ConfigKey(
        "principal.builder.class",
        CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "The class that names the principal of a connection.",
        dynamic=True,
        per_broker=True,
        effect=REFUSED,
        reason="Java classes cannot be loaded",
    ),
    ConfigKey(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        "The protocol that brokers would use among themselves.",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        effect=NONE,
        reason="there is one broker",
    ),
    ConfigKey(
        "security.providers",
        STRING,
        None,
        "Classes of Java security providers.",
        effect=NONE,
        reason="there is no Java here",
    ),
    ConfigKey(
        "super.users",
        STRING,
        "",
        "Principals that may do everything, as User:alice;User:bob.",
        check=checks.principals,
    ),
)
