"""The settings of Kafka's consumer, by name: clients send them along when they create a consumer over HTTP.

Any other name is misspelt. A test holds KAFKA to what Kafka's own ConsumerConfig says.
"""

from typing import Final

KAFKA: Final = frozenset(
    (
        "allow.auto.create.topics", "auto.commit.interval.ms", "auto.offset.reset", "bootstrap.servers",
        "check.crcs", "client.dns.lookup", "client.id", "client.rack", "config.providers",
        "connections.max.idle.ms", "default.api.timeout.ms", "enable.auto.commit", "enable.metrics.push",
        "exclude.internal.topics", "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "group.id",
        "group.instance.id", "group.protocol", "group.remote.assignor", "heartbeat.interval.ms",
        "interceptor.classes", "internal.throw.on.fetch.stable.offset.unsupported", "isolation.level",
        "key.deserializer", "max.partition.fetch.bytes", "max.poll.interval.ms", "max.poll.records",
        "metadata.max.age.ms", "metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.strategy",
        "metric.reporters", "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
        "partition.assignment.strategy", "receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
        "request.timeout.ms", "retry.backoff.max.ms", "retry.backoff.ms", "sasl.client.callback.handler.class",
        "sasl.jaas.config", "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name", "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor", "sasl.login.callback.handler.class", "sasl.login.class",
        "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms", "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter", "sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms",
        "sasl.mechanism", "sasl.oauthbearer.assertion.algorithm", "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds", "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include", "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub", "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file", "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.template.file", "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.header.urlencode", "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class", "sasl.oauthbearer.scope", "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name", "sasl.oauthbearer.token.endpoint.url", "security.protocol",
        "security.providers", "send.buffer.bytes", "session.timeout.ms", "share.acknowledgement.mode",
        "share.acquire.mode", "socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms",
        "ssl.cipher.suites", "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm",
        "ssl.engine.factory.class", "ssl.key.password", "ssl.keymanager.algorithm",
        "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location", "ssl.keystore.password",
        "ssl.keystore.type", "ssl.protocol", "ssl.provider", "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm", "ssl.truststore.certificates", "ssl.truststore.location",
        "ssl.truststore.password", "ssl.truststore.type", "value.deserializer",
    )
)  # fmt: skip
"""All of Apache Kafka 4.3."""

HONOURED: Final = frozenset(
    {
        "auto.offset.reset",
        "client.id",
        "enable.auto.commit",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.instance.id",
        "isolation.level",
        "max.poll.interval.ms",
        "max.poll.records",
        "session.timeout.ms",
    }
)
"""Those that mean something to a consumer in the broker's own process."""

OF_THE_API: Final = (
    "name", "id", "format", "auto.offset.reset", "auto.commit.enable", "fetch.min.bytes", "consumer.request.timeout.ms",
    "responseMinBytes", "requestWaitMs",
)  # fmt: skip
"""Those of REST proxy API v2, with the older names of two."""
