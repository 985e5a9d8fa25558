"""security_settings"""

from typing import Final

from leafcuttr.config.setting import CLASS, INT, LIST, LONG, PASSWORD, STRING, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("alter.config.policy.class.name", CLASS, None, ""),
    Setting("authorizer.class.name", STRING, "", ""),
    Setting("client.quota.callback.class", CLASS, None, ""),
    Setting("config.providers", LIST, (), "", dynamic=True),
    Setting("connection.failed.authentication.delay.ms", INT, 100, "", unit="ms", minimum=0),
    Setting("connections.max.reauth.ms", LONG, 0, "", unit="ms"),
    Setting("create.topic.policy.class.name", CLASS, None, ""),
    Setting("delegation.token.expiry.check.interval.ms", LONG, 3_600_000, "", unit="ms", minimum=1),
    Setting("delegation.token.expiry.time.ms", LONG, 86_400_000, "", unit="ms", minimum=1),
    Setting("delegation.token.max.lifetime.ms", LONG, 604_800_000, "", unit="ms", minimum=1),
    Setting("delegation.token.secret.key", PASSWORD, None, ""),
    Setting(
        "principal.builder.class",
        CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "",
        dynamic=True,
        per_broker=True,
    ),
    Setting(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        "",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    Setting("security.providers", STRING, None, ""),
)
