"""tls_settings"""

from typing import Final

from leafcuttr.config.setting import BOOLEAN, CLASS, LIST, PASSWORD, STRING, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("ssl.allow.dn.changes", BOOLEAN, False, ""),
    Setting("ssl.allow.san.changes", BOOLEAN, False, ""),
    Setting("ssl.cipher.suites", LIST, (), "", dynamic=True, per_broker=True),
    Setting(
        "ssl.client.auth",
        STRING,
        "none",
        "",
        choices=("required", "requested", "none"),
        dynamic=True,
        per_broker=True,
    ),
    Setting("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), "", dynamic=True, per_broker=True),
    Setting("ssl.endpoint.identification.algorithm", STRING, "https", "", dynamic=True, per_broker=True),
    Setting("ssl.engine.factory.class", CLASS, None, "", dynamic=True, per_broker=True),
    Setting("ssl.key.password", PASSWORD, None, "", dynamic=True, per_broker=True),
    Setting("ssl.keymanager.algorithm", STRING, "SunX509", "", dynamic=True, per_broker=True),
    Setting("ssl.keystore.certificate.chain", PASSWORD, None, "", dynamic=True, per_broker=True),
    Setting("ssl.keystore.key", PASSWORD, None, "", dynamic=True, per_broker=True),
    Setting("ssl.keystore.location", STRING, None, "", dynamic=True, per_broker=True),
    Setting("ssl.keystore.password", PASSWORD, None, "", dynamic=True, per_broker=True),
    Setting("ssl.keystore.type", STRING, "JKS", "", dynamic=True, per_broker=True),
    Setting("ssl.principal.mapping.rules", STRING, "DEFAULT", ""),
    Setting("ssl.protocol", STRING, "TLSv1.3", "", dynamic=True, per_broker=True),
    Setting("ssl.provider", STRING, None, "", dynamic=True, per_broker=True),
    Setting("ssl.secure.random.implementation", STRING, None, "", dynamic=True, per_broker=True),
    Setting("ssl.trustmanager.algorithm", STRING, "PKIX", "", dynamic=True, per_broker=True),
    Setting("ssl.truststore.certificates", PASSWORD, None, "", dynamic=True, per_broker=True),
    Setting("ssl.truststore.location", STRING, None, "", dynamic=True, per_broker=True),
    Setting("ssl.truststore.password", PASSWORD, None, "", dynamic=True, per_broker=True),
    Setting("ssl.truststore.type", STRING, "JKS", "", dynamic=True, per_broker=True),
)
