"""Broker settings of TLS."""

from functools import partial
from typing import Final

from leafcuttr.config.setting import BOOLEAN, CLASS, LIST, PASSWORD, STRING, ConfigKey, Effect

unused: Final = partial(
    ConfigKey,
    effect=Effect.NONE,
    reason="TLS comes in a later version, and a listener that needs it stops the start",
)

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    unused("ssl.allow.dn.changes", BOOLEAN, False, "Let a new certificate have another distinguished name."),
    unused("ssl.allow.san.changes", BOOLEAN, False, "Let a new certificate have other alternative names."),
    unused(
        "ssl.cipher.suites",
        LIST,
        (),
        "The cipher suites to offer; empty for all of the library's.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "ssl.client.auth",
        STRING,
        "none",
        "Whether clients have to show a certificate.",
        choices=("required", "requested", "none"),
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "ssl.enabled.protocols",
        LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The versions of TLS to speak.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        "How a server's name is checked against its certificate; empty for not at all.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "ssl.engine.factory.class",
        CLASS,
        None,
        "The class that makes TLS engines.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "ssl.key.password", PASSWORD, None, "The password of the private key.", dynamic=True, per_broker=True
    ),
    unused(
        "ssl.keymanager.algorithm",
        STRING,
        "SunX509",
        "The algorithm of Java's key manager.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        "The certificate chain, as PEM text.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "ssl.keystore.key", PASSWORD, None, "The private key, as PEM text.", dynamic=True, per_broker=True
    ),
    unused(
        "ssl.keystore.location",
        STRING,
        None,
        "The file with key and certificate.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "ssl.keystore.password", PASSWORD, None, "The password of that file.", dynamic=True, per_broker=True
    ),
    unused("ssl.keystore.type", STRING, "JKS", "The format of that file.", dynamic=True, per_broker=True),
    unused(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        "Rules that make a principal of a certificate's distinguished name.",
    ),
    unused("ssl.protocol", STRING, "TLSv1.3", "The preferred version of TLS.", dynamic=True, per_broker=True),
    unused(
        "ssl.provider", STRING, None, "The Java security provider for TLS.", dynamic=True, per_broker=True
    ),
    unused(
        "ssl.secure.random.implementation",
        STRING,
        None,
        "Java's source of random numbers for TLS.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "ssl.trustmanager.algorithm",
        STRING,
        "PKIX",
        "The algorithm of Java's trust manager.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "ssl.truststore.certificates",
        PASSWORD,
        None,
        "The trusted certificates, as PEM text.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "ssl.truststore.location",
        STRING,
        None,
        "The file with trusted certificates.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "ssl.truststore.password", PASSWORD, None, "The password of that file.", dynamic=True, per_broker=True
    ),
    unused("ssl.truststore.type", STRING, "JKS", "The format of that file.", dynamic=True, per_broker=True),
)
