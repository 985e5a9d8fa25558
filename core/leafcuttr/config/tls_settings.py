"""Broker settings of TLS. A listener has its own by `listener.name.<name>.` before the name (KIP-103)."""

from functools import partial
from typing import Final

from leafcuttr.config.setting import BOOLEAN, CLASS, LIST, PASSWORD, STRING, ConfigKey, Effect

used: Final = partial(ConfigKey, dynamic=True, per_broker=True)
java: Final = partial(
    ConfigKey, effect=Effect.NONE, reason="OpenSSL does TLS here, and Java has no part in it"
)
by_content: Final = partial(ConfigKey, effect=Effect.NONE, reason="the format is told by the content")
later: Final = partial(ConfigKey, effect=Effect.NONE)

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    ConfigKey(
        "ssl.allow.dn.changes",
        BOOLEAN,
        False,
        "Let the certificate that replaces one while the broker runs have another distinguished name.",
    ),
    ConfigKey(
        "ssl.allow.san.changes",
        BOOLEAN,
        False,
        "Let the certificate that replaces one while the broker runs lack some of its alternative names.",
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
        "The file with the private key and its certificates, the listener's own first: PEM, PKCS#12 or JKS.",
    ),
    used("ssl.keystore.password", PASSWORD, None, "The password of that file, if it is PKCS#12 or JKS."),
    by_content("ssl.keystore.type", STRING, "JKS", "The format of that file.", dynamic=True, per_broker=True),
    ConfigKey(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        "Rules that make the name of a principal of the distinguished name in a client's certificate: DEFAULT or "
        "RULE:pattern/replacement/[LU], the first that matches counts.",
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
        "The file with the certificates that sign those of clients: PEM, PKCS#12 or JKS.",
    ),
    used("ssl.truststore.password", PASSWORD, None, "The password of that file, if it is PKCS#12 or JKS."),
    by_content(
        "ssl.truststore.type", STRING, "JKS", "The format of that file.", dynamic=True, per_broker=True
    ),
)
