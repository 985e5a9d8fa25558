"""The keys of Kafka's clients, behind `ALIAS.`, `producer.`, `consumer.` or `admin.`, with what they do here.

Which of them a connection uses says the client of the core (`leafcuttr.client.properties`); what it does not use is
accepted and named. Types and defaults are those of ProducerConfig, ConsumerConfig and AdminClientConfig of Kafka 4.3.1.
"""

from typing import Final, NamedTuple

from leafcuttr_forward.mm2.keys import Kind, Use

_CONNECTION: Final = "Of connections to the cluster."
_TLS: Final = "Of TLS; stores are PEM, JKS or PKCS#12."
_ALWAYS: Final = "Flows write idempotently, to all replicas in sync, and in transactions of their own."
_BATCHES: Final = "Batches are copied as they were made."
_MEMBER: Final = "Records are not read as a member of a group."
_OWN: Final = "The client here does without it."
_MECHANISM: Final = "Of Kerberos, OAuth or a class of Java: spoken are PLAIN and SCRAM."
_JAVA: Final = "It is a setting of Java's clients in a Java process."


class ClientKey(NamedTuple):
    """One key. `default` is Java's, of the first of its `clients`; None: it has none."""

    name: str
    kind: Kind
    default: str | None
    clients: str
    """Which of Java's clients have it: p, c and a for producer, consumer and admin."""
    what: str
    use: Use = Use.USED


def _ignored(name: str, kind: Kind, default: str | None, clients: str, why: str) -> ClientKey:
    return ClientKey(name, kind, default, clients, why, Use.IGNORED)


CLIENT_KEYS: Final = (
    ClientKey(
        "bootstrap.servers",
        Kind.LIST,
        None,
        "pca",
        "The addresses of the cluster. One that is this broker's is taken in process.",
    ),
    ClientKey("client.id", Kind.STRING, "", "pca", "By default `leafcuttr`."),
    ClientKey("client.rack", Kind.STRING, "", "c", "For brokers that let followers be read (KIP-392)."),
    ClientKey(
        "delivery.timeout.ms",
        Kind.INT,
        "120000",
        "p",
        "How long batches are sent again until the flow begins anew.",
    ),
    ClientKey("fetch.max.bytes", Kind.INT, "52428800", "c", _CONNECTION),
    ClientKey("fetch.max.wait.ms", Kind.INT, "500", "c", _CONNECTION),
    ClientKey("fetch.min.bytes", Kind.INT, "1", "c", _CONNECTION),
    ClientKey("max.partition.fetch.bytes", Kind.INT, "1048576", "c", _CONNECTION),
    ClientKey("max.request.size", Kind.INT, "1048576", "p", "The largest request that is sent."),
    ClientKey("metadata.max.age.ms", Kind.LONG, "300000", "pca", _CONNECTION),
    ClientKey("receive.buffer.bytes", Kind.INT, "32768", "pca", _CONNECTION),
    ClientKey("reconnect.backoff.max.ms", Kind.LONG, "1000", "pca", _CONNECTION),
    ClientKey("reconnect.backoff.ms", Kind.LONG, "50", "pca", _CONNECTION),
    ClientKey("request.timeout.ms", Kind.INT, "30000", "pca", "How long an answer may take."),
    ClientKey("retry.backoff.max.ms", Kind.LONG, "1000", "pca", _CONNECTION),
    ClientKey("retry.backoff.ms", Kind.LONG, "100", "pca", _CONNECTION),
    ClientKey(
        "sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "pca",
        "Its `username` and `password` are taken; also `sasl.username` and `sasl.password`, as librdkafka has them.",
    ),
    ClientKey("sasl.mechanism", Kind.STRING, "GSSAPI", "pca", "`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`."),
    ClientKey(
        "security.protocol",
        Kind.STRING,
        "PLAINTEXT",
        "pca",
        "`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`.",
    ),
    ClientKey("send.buffer.bytes", Kind.INT, "131072", "pca", _CONNECTION),
    ClientKey("socket.connection.setup.timeout.ms", Kind.LONG, "10000", "pca", _CONNECTION),
    ClientKey("ssl.cipher.suites", Kind.LIST, "", "pca", _TLS),
    ClientKey("ssl.enabled.protocols", Kind.LIST, "TLSv1.2, TLSv1.3", "pca", _TLS),
    ClientKey("ssl.endpoint.identification.algorithm", Kind.STRING, "https", "pca", _TLS),
    ClientKey("ssl.key.password", Kind.PASSWORD, None, "pca", _TLS),
    ClientKey("ssl.keystore.certificate.chain", Kind.PASSWORD, None, "pca", _TLS),
    ClientKey("ssl.keystore.key", Kind.PASSWORD, None, "pca", _TLS),
    ClientKey("ssl.keystore.location", Kind.STRING, None, "pca", _TLS),
    ClientKey("ssl.keystore.password", Kind.PASSWORD, None, "pca", _TLS),
    ClientKey("ssl.keystore.type", Kind.STRING, "JKS", "pca", _TLS),
    ClientKey("ssl.truststore.certificates", Kind.PASSWORD, None, "pca", _TLS),
    ClientKey("ssl.truststore.location", Kind.STRING, None, "pca", _TLS),
    ClientKey("ssl.truststore.password", Kind.PASSWORD, None, "pca", _TLS),
    ClientKey("ssl.truststore.type", Kind.STRING, "JKS", "pca", _TLS),
    ClientKey(
        "isolation.level",
        Kind.STRING,
        "read_uncommitted",
        "c",
        "Other than in Java, flows read committed records only, unless this is `read_uncommitted`.",
    ),
    ClientKey(
        "auto.offset.reset",
        Kind.STRING,
        "latest",
        "c",
        "Where a partition without a position begins: `earliest`, MirrorMaker's default, or `latest`.",
    ),
    ClientKey(
        "compression.type",
        Kind.STRING,
        "none",
        "p",
        "Batches keep their compression without it. With it every record is decoded.",
    ),
    _ignored("acks", Kind.STRING, "all", "p", _ALWAYS),
    _ignored("allow.auto.create.topics", Kind.BOOLEAN, "true", "c", _ALWAYS),
    _ignored("enable.idempotence", Kind.BOOLEAN, "true", "p", _ALWAYS),
    _ignored("max.in.flight.requests.per.connection", Kind.INT, "5", "p", _ALWAYS),
    _ignored("retries", Kind.INT, "2147483647", "pa", _ALWAYS),
    _ignored("transaction.timeout.ms", Kind.INT, "60000", "p", _ALWAYS),
    _ignored("transaction.two.phase.commit.enable", Kind.BOOLEAN, "false", "p", _ALWAYS),
    _ignored("transactional.id", Kind.STRING, None, "p", _ALWAYS),
    _ignored("batch.size", Kind.INT, "16384", "p", _BATCHES),
    _ignored("buffer.memory", Kind.LONG, "33554432", "p", _BATCHES),
    _ignored("check.crcs", Kind.BOOLEAN, "true", "c", _BATCHES),
    _ignored("compression.gzip.level", Kind.INT, "-1", "p", _BATCHES),
    _ignored("compression.lz4.level", Kind.INT, "9", "p", _BATCHES),
    _ignored("compression.zstd.level", Kind.INT, "3", "p", _BATCHES),
    _ignored("linger.ms", Kind.LONG, "5", "p", _BATCHES),
    _ignored("max.block.ms", Kind.LONG, "60000", "p", _BATCHES),
    _ignored("max.poll.records", Kind.INT, "500", "c", _BATCHES),
    _ignored("partitioner.adaptive.partitioning.enable", Kind.BOOLEAN, "true", "p", _BATCHES),
    _ignored("partitioner.availability.timeout.ms", Kind.LONG, "0", "p", _BATCHES),
    _ignored("partitioner.class", Kind.CLASS, None, "p", _BATCHES),
    _ignored("partitioner.ignore.keys", Kind.BOOLEAN, "false", "p", _BATCHES),
    _ignored("auto.commit.interval.ms", Kind.INT, "5000", "c", _MEMBER),
    _ignored("enable.auto.commit", Kind.BOOLEAN, "true", "c", _MEMBER),
    _ignored("exclude.internal.topics", Kind.BOOLEAN, "true", "c", _MEMBER),
    _ignored("group.id", Kind.STRING, None, "c", _MEMBER),
    _ignored("group.instance.id", Kind.STRING, None, "c", _MEMBER),
    _ignored("group.protocol", Kind.STRING, "classic", "c", _MEMBER),
    _ignored("group.remote.assignor", Kind.STRING, None, "c", _MEMBER),
    _ignored("heartbeat.interval.ms", Kind.INT, "3000", "c", _MEMBER),
    _ignored("max.poll.interval.ms", Kind.INT, "300000", "c", _MEMBER),
    _ignored(
        "partition.assignment.strategy",
        Kind.LIST,
        "org.apache.kafka.clients.consumer.RangeAssignor, org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        "c",
        _MEMBER,
    ),
    _ignored("session.timeout.ms", Kind.INT, "45000", "c", _MEMBER),
    _ignored("share.acknowledgement.mode", Kind.STRING, "implicit", "c", _MEMBER),
    _ignored("share.acquire.mode", Kind.STRING, "BATCH_OPTIMIZED", "c", _MEMBER),
    _ignored("bootstrap.controllers", Kind.LIST, "", "a", _OWN),
    _ignored("client.dns.lookup", Kind.STRING, "use_all_dns_ips", "pca", _OWN),
    _ignored("connections.max.idle.ms", Kind.LONG, "540000", "pca", _OWN),
    _ignored("default.api.timeout.ms", Kind.INT, "60000", "ca", _OWN),
    _ignored("metadata.max.idle.ms", Kind.LONG, "300000", "p", _OWN),
    _ignored("metadata.recovery.rebootstrap.trigger.ms", Kind.LONG, "300000", "pca", _OWN),
    _ignored("metadata.recovery.strategy", Kind.STRING, "rebootstrap", "pca", _OWN),
    _ignored("socket.connection.setup.timeout.max.ms", Kind.LONG, "30000", "pca", _OWN),
    _ignored("sasl.client.callback.handler.class", Kind.CLASS, None, "pca", _MECHANISM),
    _ignored("sasl.kerberos.kinit.cmd", Kind.STRING, "/usr/bin/kinit", "pca", _MECHANISM),
    _ignored("sasl.kerberos.min.time.before.relogin", Kind.LONG, "60000", "pca", _MECHANISM),
    _ignored("sasl.kerberos.service.name", Kind.STRING, None, "pca", _MECHANISM),
    _ignored("sasl.kerberos.ticket.renew.jitter", Kind.DOUBLE, "0.05", "pca", _MECHANISM),
    _ignored("sasl.kerberos.ticket.renew.window.factor", Kind.DOUBLE, "0.8", "pca", _MECHANISM),
    _ignored("sasl.login.callback.handler.class", Kind.CLASS, None, "pca", _MECHANISM),
    _ignored("sasl.login.class", Kind.CLASS, None, "pca", _MECHANISM),
    _ignored("sasl.login.connect.timeout.ms", Kind.INT, None, "pca", _MECHANISM),
    _ignored("sasl.login.read.timeout.ms", Kind.INT, None, "pca", _MECHANISM),
    _ignored("sasl.login.refresh.buffer.seconds", Kind.SHORT, "300", "pca", _MECHANISM),
    _ignored("sasl.login.refresh.min.period.seconds", Kind.SHORT, "60", "pca", _MECHANISM),
    _ignored("sasl.login.refresh.window.factor", Kind.DOUBLE, "0.8", "pca", _MECHANISM),
    _ignored("sasl.login.refresh.window.jitter", Kind.DOUBLE, "0.05", "pca", _MECHANISM),
    _ignored("sasl.login.retry.backoff.max.ms", Kind.LONG, "10000", "pca", _MECHANISM),
    _ignored("sasl.login.retry.backoff.ms", Kind.LONG, "100", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.assertion.algorithm", Kind.STRING, "RS256", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.assertion.claim.aud", Kind.STRING, None, "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.assertion.claim.exp.seconds", Kind.INT, "300", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.assertion.claim.iss", Kind.STRING, None, "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.assertion.claim.jti.include", Kind.BOOLEAN, "false", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.assertion.claim.nbf.seconds", Kind.INT, "60", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.assertion.claim.sub", Kind.STRING, None, "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.assertion.file", Kind.STRING, None, "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.assertion.private.key.file", Kind.STRING, None, "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.assertion.private.key.passphrase", Kind.PASSWORD, None, "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.assertion.template.file", Kind.STRING, None, "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.client.credentials.client.id", Kind.STRING, None, "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.client.credentials.client.secret", Kind.PASSWORD, None, "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.clock.skew.seconds", Kind.INT, "30", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.expected.audience", Kind.LIST, "", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.expected.issuer", Kind.STRING, None, "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.header.urlencode", Kind.BOOLEAN, "false", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.jwks.endpoint.refresh.ms", Kind.LONG, "3600000", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", Kind.LONG, "10000", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", Kind.LONG, "100", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.jwks.endpoint.url", Kind.STRING, None, "pca", _MECHANISM),
    _ignored(
        "sasl.oauthbearer.jwt.retriever.class",
        Kind.CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "pca",
        _MECHANISM,
    ),
    _ignored(
        "sasl.oauthbearer.jwt.validator.class",
        Kind.CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        "pca",
        _MECHANISM,
    ),
    _ignored("sasl.oauthbearer.scope", Kind.STRING, None, "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.scope.claim.name", Kind.STRING, "scope", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.sub.claim.name", Kind.STRING, "sub", "pca", _MECHANISM),
    _ignored("sasl.oauthbearer.token.endpoint.url", Kind.STRING, None, "pca", _MECHANISM),
    _ignored("config.providers", Kind.LIST, "", "pca", _JAVA),
    _ignored("enable.metrics.push", Kind.BOOLEAN, "true", "pca", _JAVA),
    _ignored("interceptor.classes", Kind.LIST, "", "pc", _JAVA),
    _ignored("key.deserializer", Kind.CLASS, None, "c", _JAVA),
    _ignored("key.serializer", Kind.CLASS, None, "p", _JAVA),
    _ignored("metric.reporters", Kind.LIST, "org.apache.kafka.common.metrics.JmxReporter", "pca", _JAVA),
    _ignored("metrics.num.samples", Kind.INT, "2", "pca", _JAVA),
    _ignored("metrics.recording.level", Kind.STRING, "INFO", "pca", _JAVA),
    _ignored("metrics.sample.window.ms", Kind.LONG, "30000", "pca", _JAVA),
    _ignored("security.providers", Kind.STRING, None, "pca", _JAVA),
    _ignored("ssl.engine.factory.class", Kind.CLASS, None, "pca", _JAVA),
    _ignored("ssl.keymanager.algorithm", Kind.STRING, "SunX509", "pca", _JAVA),
    _ignored("ssl.protocol", Kind.STRING, "TLSv1.3", "pca", _JAVA),
    _ignored("ssl.provider", Kind.STRING, None, "pca", _JAVA),
    _ignored("ssl.secure.random.implementation", Kind.STRING, None, "pca", _JAVA),
    _ignored("ssl.trustmanager.algorithm", Kind.STRING, "PKIX", "pca", _JAVA),
    _ignored("value.deserializer", Kind.CLASS, None, "c", _JAVA),
    _ignored("value.serializer", Kind.CLASS, None, "p", _JAVA),
)
