"""Broker settings of TLS. A listener has its own by `listener.name.<name>.` before the name (KIP-103)."""

from functools import partial
from typing import Final

from leafcuttr.config.setting import BOOLEAN, CLASS, LIST, PASSWORD, STRING, ConfigKey, Effect

used: Final = partial(ConfigKey, dynamic=True, per_broker=True)
java: Final = partial(
    ConfigKey, effect=Effect.NONE, reason="OpenSSL does TLS here, and Java has no part in it"
)
by_content: Final = partial(
    ConfigKey, effect=Effect.NONE, reason="the format is told by the content; it has to be PEM"
)
later: Final = partial(ConfigKey, effect=Effect.NONE)

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    later(
        "ssl.allow.dn.changes",
        BOOLEAN,
        False,
        "Let a new certificate have another distinguished name.",
        reason="a new certificate may have any names",
    ),
    later(
        "ssl.allow.san.changes",
        BOOLEAN,
        False,
        "Let a new certificate have other alternative names.",
        reason="a new certificate may have any names",
    ),
    used(
        "ssl.cipher.suites",
        LIST,
        (),
        "The cipher suites to offer, by Java's names; empty: those that OpenSSL has on.",
    ),
    used(
        "ssl.client.auth",
        STRING,
        "none",
        "Whether clients have to show a certificate that is trusted.",
        choices=("required", "requested", "none"),
    ),
    used("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), "The versions of TLS to speak."),
    later(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        "How a server's name is checked against its certificate; empty for not at all.",
        dynamic=True,
        per_broker=True,
        reason="names are checked by clients; the broker connects to no other one",
    ),
    java(
        "ssl.engine.factory.class",
        CLASS,
        None,
        "The class that makes TLS engines.",
        dynamic=True,
        per_broker=True,
    ),
    used("ssl.key.password", PASSWORD, None, "The password of the private key."),
    java(
        "ssl.keymanager.algorithm",
        STRING,
        "SunX509",
        "The algorithm of Java's key manager.",
        dynamic=True,
        per_broker=True,
    ),
    used(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        "The certificates of that key as PEM text, its own first.",
    ),
    used("ssl.keystore.key", PASSWORD, None, "The private key as PEM text, in the place of a keystore."),
    used(
        "ssl.keystore.location",
        STRING,
        None,
        "The PEM file with the private key and its certificates, the listener's own first.",
    ),
    by_content(
        "ssl.keystore.password", PASSWORD, None, "The password of that file.", dynamic=True, per_broker=True
    ),
    by_content("ssl.keystore.type", STRING, "JKS", "The format of that file.", dynamic=True, per_broker=True),
    later(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        "Rules that make a principal of a certificate's distinguished name.",
        reason="clients with certificates have no principal of their own yet",
    ),
    later(
        "ssl.protocol",
        STRING,
        "TLSv1.3",
        "The preferred version of TLS.",
        dynamic=True,
        per_broker=True,
        reason="the newest version that both sides have is spoken; ssl.enabled.protocols bounds it",
    ),
    java("ssl.provider", STRING, None, "The Java security provider for TLS.", dynamic=True, per_broker=True),
    java(
        "ssl.secure.random.implementation",
        STRING,
        None,
        "Java's source of random numbers for TLS.",
        dynamic=True,
        per_broker=True,
    ),
    java(
        "ssl.trustmanager.algorithm",
        STRING,
        "PKIX",
        "The algorithm of Java's trust manager.",
        dynamic=True,
        per_broker=True,
    ),
    used("ssl.truststore.certificates", PASSWORD, None, "The same as PEM text, in the place of a file."),
    used(
        "ssl.truststore.location",
        STRING,
        None,
        "The PEM file with the certificates that sign those of clients.",
    ),
    by_content(
        "ssl.truststore.password", PASSWORD, None, "The password of that file.", dynamic=True, per_broker=True
    ),
    by_content(
        "ssl.truststore.type", STRING, "JKS", "The format of that file.", dynamic=True, per_broker=True
    ),
)
