"""The names of the settings of Kafka's clients, so that a misspelt one can be told from one without a meaning here.

Tests hold the first list to what the classes of Java say, the second to what librdkafka takes.
"""

from typing import Final

JAVA: Final = frozenset(
    (
        "acks", "allow.auto.create.topics", "auto.commit.interval.ms", "auto.offset.reset", "batch.size",
        "bootstrap.controllers", "bootstrap.servers", "buffer.memory", "check.crcs", "client.dns.lookup",
        "client.id", "client.rack", "compression.gzip.level", "compression.lz4.level", "compression.type",
        "compression.zstd.level", "config.providers", "connections.max.idle.ms", "default.api.timeout.ms",
        "delivery.timeout.ms", "enable.auto.commit", "enable.idempotence", "enable.metrics.push",
        "exclude.internal.topics", "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "group.id",
        "group.instance.id", "group.protocol", "group.remote.assignor", "heartbeat.interval.ms",
        "interceptor.classes", "internal.throw.on.fetch.stable.offset.unsupported", "isolation.level",
        "key.deserializer", "key.serializer", "linger.ms", "max.block.ms", "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes", "max.poll.interval.ms", "max.poll.records", "max.request.size",
        "metadata.max.age.ms", "metadata.max.idle.ms", "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy", "metric.reporters", "metrics.num.samples", "metrics.recording.level",
        "metrics.sample.window.ms", "partition.assignment.strategy", "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms", "partitioner.class", "partitioner.ignore.keys",
        "receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.timeout.ms", "retries",
        "retry.backoff.max.ms", "retry.backoff.ms", "sasl.client.callback.handler.class", "sasl.jaas.config",
        "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin", "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.callback.handler.class", "sasl.login.class", "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms", "sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter", "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms", "sasl.mechanism", "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud", "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss", "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds", "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file", "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase", "sasl.oauthbearer.assertion.template.file",
        "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.jwt.validator.class", "sasl.oauthbearer.scope",
        "sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.token.endpoint.url", "security.protocol", "security.providers", "send.buffer.bytes",
        "session.timeout.ms", "share.acknowledgement.mode", "share.acquire.mode",
        "socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms", "ssl.cipher.suites",
        "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm", "ssl.engine.factory.class",
        "ssl.key.password", "ssl.keymanager.algorithm", "ssl.keystore.certificate.chain", "ssl.keystore.key",
        "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type", "ssl.protocol", "ssl.provider",
        "ssl.secure.random.implementation", "ssl.trustmanager.algorithm", "ssl.truststore.certificates",
        "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type", "transaction.timeout.ms",
        "transaction.two.phase.commit.enable", "transactional.id", "value.deserializer", "value.serializer",
    )
)  # fmt: skip
"""All of the consumer, the producer and the administrator of Apache Kafka 4.3."""

LIBRDKAFKA: Final = frozenset(
    (
        "api.version.fallback.ms", "api.version.request", "api.version.request.timeout.ms", "auto.commit.enable",
        "batch.num.messages", "broker.address.family", "broker.address.ttl", "broker.version.fallback",
        "builtin.features", "client.software.name", "client.software.version", "compression.codec",
        "compression.level", "consume.callback.max.messages", "coordinator.query.interval.ms", "debug",
        "enable.auto.offset.store", "enable.gapless.guarantee", "enable.partition.eof", "enable.random.seed",
        "enable.sasl.oauthbearer.unsecure.jwt", "enable.sparse.connections", "enable.ssl.certificate.verification",
        "enabled_events", "fetch.error.backoff.ms", "fetch.message.max.bytes", "fetch.queue.backoff.ms",
        "fetch.wait.max.ms", "group.protocol.type", "https.ca.location", "https.ca.pem",
        "internal.termination.signal", "log.connection.close", "log.queue", "log.thread.name", "log_level",
        "max.in.flight", "message.copy.max.bytes", "message.send.max.retries", "message.timeout.ms",
        "metadata.request.timeout.ms", "offset.store.method", "offset.store.path", "offset.store.sync.interval.ms",
        "partitioner", "plugin.library.paths", "produce.offset.report", "queue.buffering.backpressure.threshold",
        "queue.buffering.max.kbytes", "queue.buffering.max.messages", "queue.buffering.max.ms",
        "queued.max.messages.kbytes", "queued.min.messages", "queuing.strategy", "receive.message.max.bytes",
        "reconnect.backoff.jitter.ms", "request.required.acks", "sasl.kerberos.keytab", "sasl.kerberos.principal",
        "sasl.mechanisms", "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.assertion.private.key.pem", "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.grant.type", "sasl.oauthbearer.metadata.authentication.type", "sasl.oauthbearer.method",
        "sasl.password", "sasl.username", "socket.blocking.max.ms", "socket.keepalive.enable", "socket.max.fails",
        "socket.nagle.disable", "socket.receive.buffer.bytes", "socket.send.buffer.bytes", "socket.timeout.ms",
        "ssl.ca.certificate.stores", "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location",
        "ssl.certificate.pem", "ssl.crl.location", "ssl.curves.list", "ssl.engine.id", "ssl.engine.location",
        "ssl.key.location", "ssl.key.pem", "ssl.providers", "ssl.sigalgs.list", "statistics.interval.ms",
        "sticky.partitioning.linger.ms", "test.mock.broker.rtt", "test.mock.num.brokers", "topic.blacklist",
        "topic.metadata.propagation.max.ms", "topic.metadata.refresh.fast.cnt",
        "topic.metadata.refresh.fast.interval.ms", "topic.metadata.refresh.interval.ms",
        "topic.metadata.refresh.sparse",
    )
)  # fmt: skip
"""Those of librdkafka that Java does not have."""

KNOWN: Final = JAVA | LIBRDKAFKA | {"auto.include.jmx.reporter"}
"""The last is of Java's clients before 4.0."""
