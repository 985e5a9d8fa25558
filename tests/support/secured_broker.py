"""A broker of ours with a listener for each security protocol, and a user that logs in by each mechanism.

    with secured_broker(folder) as broker:
        properties = broker.client("SASL_SSL", "SCRAM-SHA-512")

The listener MTLS is SSL, and takes no client without a certificate. (`secure_kafka` is the same of Apache Kafka.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.broker_process import running_broker
from support.tls_peer import Certificates

NAME: Final = "alice"
PASSWORD: Final = "open, the = door"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PROTOCOLS: Final = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "MTLS": "SSL",
}
"""By listener."""


@dataclass(frozen=True)
class SecuredBroker:
    """`addresses` by listener, which is named as its protocol; `trusted` is the authority's PEM, `own` that of a
    client: a key and its certificate."""

    addresses: Mapping[str, str]
    certificates: Certificates
    own: str

    @property
    def trusted(self) -> str:
        return self.certificates.trusted

    def client(self, listener: str, mechanism: str | None = None) -> dict[str, str]:
        """The properties of a client, by Java's names."""
        protocol = _PROTOCOLS[listener]
        found = {"bootstrap.servers": self.addresses[listener], "security.protocol": protocol}
        if "SSL" in protocol:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.trusted}
        if listener == "MTLS":
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.own}
        if mechanism is not None:
            kind = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
            found |= {
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": f"org.apache.kafka.common.security.{kind} required "
                f'username="{NAME}" password="{PASSWORD}";',
            }
        return found


@contextmanager
def secured_broker(folder: Path, **settings: str) -> Iterator[SecuredBroker]:
    """A process of its own; names of settings with `_` for `.`."""
    folder.mkdir(parents=True, exist_ok=True)
    ours = Certificates(folder)
    given = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in _PROTOCOLS),
        "listener.security.protocol.map": ",".join(f"{name}:{one}" for name, one in _PROTOCOLS.items()),
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "ssl.truststore.location": ours.trusted,
        "listener.name.mtls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    with running_broker(folder / "broker", given) as broker:
        _create_user(broker.listeners["PLAINTEXT"])
        yield SecuredBroker(broker.listeners, ours, ours.issue("client.test").file)


def _create_user(address: str) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    admin = AdminClient({"bootstrap.servers": address})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        given = UserScramCredentialUpsertion(NAME, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
        for future in admin.alter_user_scram_credentials([given]).values():
            future.result(60)
