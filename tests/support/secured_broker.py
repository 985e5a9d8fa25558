"""A broker of ours with a listener for each security protocol, and a user that logs in by each mechanism.

    with secured_broker(folder) as broker:
        properties = broker.client("SASL_SSL", "SCRAM-SHA-512")

The listener MTLS is SSL, and takes no client without a certificate. Who shows `root` there can be the super user:
`super_users="User:root"` with the rules of `PRINCIPALS`. (`secure_kafka` is the same of Apache Kafka.)
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support.broker_process import running_broker
from support.tls_peer import Certificates
from support.wire_client import PATIENCE_S, WireClient

if TYPE_CHECKING:
    from support.token_issuer import Endpoint

NAME: Final = "alice"
PASSWORD: Final = "open, the = door"
MECHANISMS: Final[tuple[str, ...]] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PRINCIPALS: Final = f"RULE:.*CN=root.*/root/,RULE:.+/{NAME}/"
"""Of the listener MTLS: who shows `root` is root, who shows another certificate is the user."""
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
    client: a key and its certificate, `root` that of the administrator. `metrics` is host:port of its metrics,
    `log` what it says; `endpoint` has the issuer's keys, and brings tokens for the user."""

    addresses: Mapping[str, str]
    certificates: Certificates
    own: str
    root: str
    metrics: str
    log: Path
    endpoint: Endpoint | None = None

    @property
    def trusted(self) -> str:
        return self.certificates.trusted

    @property
    def token_url(self) -> str:
        assert self.endpoint is not None, "this broker has no issuer of tokens"
        return self.endpoint.url.replace("/keys", "/token")

    @property
    def administrator(self) -> dict[str, Any]:
        """Settings of librdkafka with which root logs in."""
        return {
            "bootstrap.servers": self.addresses["MTLS"],
            "security.protocol": "SSL",
            "ssl.ca.location": self.trusted,
            "ssl.certificate.location": self.root,
            "ssl.key.location": self.root,
        }

    @contextmanager
    def wire(self) -> Iterator[WireClient]:
        """A connection of root's."""
        context, address = self.certificates.client(), self.addresses["MTLS"]
        context.load_cert_chain(self.root)
        host, _, port = address.rpartition(":")
        plain = socket.create_connection((host, int(port)), PATIENCE_S)
        with WireClient(address, context.wrap_socket(plain, server_hostname=host)) as found:
            yield found

    def client(self, listener: str, mechanism: str | None = None) -> dict[str, str]:
        """The properties of a client, by Java's names."""
        protocol = _PROTOCOLS[listener]
        found = {"bootstrap.servers": self.addresses[listener], "security.protocol": protocol}
        if "SSL" in protocol:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.trusted}
        if listener == "MTLS":
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.own}
        if mechanism == "OAUTHBEARER":
            package = "org.apache.kafka.common.security.oauthbearer"
            found |= {
                "sasl.mechanism": mechanism,
                "sasl.login.callback.handler.class": f"{package}.OAuthBearerLoginCallbackHandler",
                "sasl.oauthbearer.token.endpoint.url": self.token_url,
                "sasl.jaas.config": f"{package}.OAuthBearerLoginModule required "
                'clientId="java" clientSecret="sesame";',
            }
        elif mechanism is not None:
            kind = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
            found |= {
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": f"org.apache.kafka.common.security.{kind} required "
                f'username="{NAME}" password="{PASSWORD}";',
            }
        return found


@contextmanager
def secured_broker(folder: Path, *, tokens: bool = False, **settings: str) -> Iterator[SecuredBroker]:
    """A process of its own; names of settings with `_` for `.`. With `tokens` OAUTHBEARER is a mechanism too."""
    folder.mkdir(parents=True, exist_ok=True)
    ours = Certificates(folder)
    mechanisms, endpoint = MECHANISMS, None
    with ExitStack() as stack:
        if tokens:
            from support.token_issuer import Issuer

            issuer = Issuer()
            issuer.add("RS256", "a")
            endpoint = stack.enter_context(issuer.endpoint())
            endpoint.make_token = lambda: issuer.token("a", sub=NAME, aud="kafka")
            settings["sasl_oauthbearer_jwks_endpoint_url"] = endpoint.url
            settings["sasl_oauthbearer_expected_audience"] = "kafka"
            mechanisms = (*MECHANISMS, "OAUTHBEARER")
        given = {
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in _PROTOCOLS),
            "listener.security.protocol.map": ",".join(f"{name}:{one}" for name, one in _PROTOCOLS.items()),
            "ssl.keystore.location": ours.issue("127.0.0.1").file,
            "ssl.truststore.location": ours.trusted,
            "listener.name.mtls.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(mechanisms),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        process = stack.enter_context(running_broker(folder / "broker", given))
        broker = SecuredBroker(
            process.listeners,
            ours,
            own=ours.issue("client.test").file,
            root=ours.issue("root.test", common_name="root").file,
            metrics=process.about["metrics"],
            log=folder / "broker" / "broker.log",
            endpoint=endpoint,
        )
        _create_user(broker.administrator)
        yield broker


def _create_user(settings: Mapping[str, Any]) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    admin = AdminClient(dict(settings))
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        given = UserScramCredentialUpsertion(NAME, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
        for future in admin.alter_user_scram_credentials([given]).values():
            future.result(60)
