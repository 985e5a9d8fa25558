"""sasl_settings"""

from typing import Final

from leafcuttr.config.setting import BOOLEAN, CLASS, DOUBLE, INT, LIST, LONG, PASSWORD, SHORT, STRING, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("sasl.client.callback.handler.class", CLASS, None, ""),
    Setting("sasl.enabled.mechanisms", LIST, ("GSSAPI",), "", dynamic=True, per_broker=True),
    Setting("sasl.jaas.config", PASSWORD, None, "", dynamic=True, per_broker=True),
    Setting("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", "", dynamic=True, per_broker=True),
    Setting("sasl.kerberos.min.time.before.relogin", LONG, 60_000, "", dynamic=True, per_broker=True),
    Setting("sasl.kerberos.principal.to.local.rules", LIST, ("DEFAULT",), "", dynamic=True, per_broker=True),
    Setting("sasl.kerberos.service.name", STRING, None, "", dynamic=True, per_broker=True),
    Setting("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, "", dynamic=True, per_broker=True),
    Setting("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, "", dynamic=True, per_broker=True),
    Setting("sasl.login.callback.handler.class", CLASS, None, ""),
    Setting("sasl.login.class", CLASS, None, ""),
    Setting("sasl.login.connect.timeout.ms", INT, None, "", unit="ms"),
    Setting("sasl.login.read.timeout.ms", INT, None, "", unit="ms"),
    Setting(
        "sasl.login.refresh.buffer.seconds", SHORT, 300, "", unit="seconds", dynamic=True, per_broker=True
    ),
    Setting(
        "sasl.login.refresh.min.period.seconds", SHORT, 60, "", unit="seconds", dynamic=True, per_broker=True
    ),
    Setting("sasl.login.refresh.window.factor", DOUBLE, 0.8, "", dynamic=True, per_broker=True),
    Setting("sasl.login.refresh.window.jitter", DOUBLE, 0.05, "", dynamic=True, per_broker=True),
    Setting("sasl.login.retry.backoff.max.ms", LONG, 10_000, "", unit="ms"),
    Setting("sasl.login.retry.backoff.ms", LONG, 100, "", unit="ms"),
    Setting("sasl.mechanism.controller.protocol", STRING, "GSSAPI", ""),
    Setting("sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", "", dynamic=True, per_broker=True),
    Setting(
        "sasl.oauthbearer.assertion.algorithm",
        STRING,
        "RS256",
        "",
        choices=("ES256", "RS256"),
        ignore_case=True,
    ),
    Setting("sasl.oauthbearer.assertion.claim.aud", STRING, None, ""),
    Setting(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        INT,
        300,
        "",
        unit="seconds",
        minimum=0,
        maximum=86_400,
    ),
    Setting("sasl.oauthbearer.assertion.claim.iss", STRING, None, ""),
    Setting("sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False, ""),
    Setting(
        "sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, "", unit="seconds", minimum=0, maximum=3600
    ),
    Setting("sasl.oauthbearer.assertion.claim.sub", STRING, None, ""),
    Setting("sasl.oauthbearer.assertion.file", STRING, None, ""),
    Setting("sasl.oauthbearer.assertion.private.key.file", STRING, None, ""),
    Setting("sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None, ""),
    Setting("sasl.oauthbearer.assertion.template.file", STRING, None, ""),
    Setting("sasl.oauthbearer.client.credentials.client.id", STRING, None, ""),
    Setting("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, ""),
    Setting("sasl.oauthbearer.clock.skew.seconds", INT, 30, "", unit="seconds"),
    Setting("sasl.oauthbearer.expected.audience", LIST, (), ""),
    Setting("sasl.oauthbearer.expected.issuer", STRING, None, ""),
    Setting("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, "", unit="ms"),
    Setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000, "", unit="ms"),
    Setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, "", unit="ms"),
    Setting("sasl.oauthbearer.jwks.endpoint.url", STRING, None, ""),
    Setting(
        "sasl.oauthbearer.jwt.retriever.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "",
    ),
    Setting(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        "",
    ),
    Setting("sasl.oauthbearer.scope", STRING, None, ""),
    Setting("sasl.oauthbearer.scope.claim.name", STRING, "scope", ""),
    Setting("sasl.oauthbearer.sub.claim.name", STRING, "sub", ""),
    Setting("sasl.oauthbearer.token.endpoint.url", STRING, None, ""),
    Setting("sasl.server.callback.handler.class", CLASS, None, ""),
    Setting("sasl.server.max.receive.size", INT, 524_288, ""),
)
