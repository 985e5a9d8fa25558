"""What a test gives a client that it sends to a listener which is not open: where, who it is, names."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import secured_clients
from support.secured_broker import SecuredBroker
from support.secured_duties import PAUSE_S


@dataclass(frozen=True)
class Scene:
    """What one test gives a client: where, how, and names. `seconds`: how long `again` goes on."""

    broker: SecuredBroker
    security: str
    topic: str
    other: str
    group: str
    folder: Path
    seconds: float = 0
    client_id: str = "steady"

    def fresh(self, kind: str) -> str:
        """The names, for `secured_clients`."""
        return {"topic": self.topic, "group": self.group}[kind]

    @property
    def token(self) -> str:
        assert self.broker.endpoint is not None
        return self.broker.endpoint.make_token()

    @property
    def librdkafka(self) -> dict[str, Any]:
        return {
            **secured_clients.librdkafka_settings(self.broker, self.security),
            "client.id": self.client_id,
        }

    @property
    def java(self) -> dict[str, str]:
        """Properties. Java reads keys in PKCS#8 only."""
        if self.security in ("SSL", "MTLS"):
            found = self.broker.client(self.security)
        else:
            found = self.broker.client("SASL_SSL", self.security)
        if self.security == "MTLS":
            found["ssl.keystore.location"] = str(_pkcs8(Path(self.broker.own), self.folder))
        return {**found, "client.id": self.client_id}

    def ticks(self) -> Iterator[None]:
        """One for each record of `again`."""
        ends = time.monotonic() + self.seconds
        while time.monotonic() < ends:
            yield
            time.sleep(PAUSE_S)

    def write(self, name: str, lines: Mapping[str, object]) -> Path:
        """A file of properties."""
        file = self.folder / name
        file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        return file


def _pkcs8(own: Path, folder: Path) -> Path:
    from cryptography.hazmat.primitives import serialization

    key, begins, chain = own.read_text().partition("-----BEGIN CERTIFICATE-----")
    made = serialization.load_pem_private_key(key.encode(), None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "own.pem"
    file.write_text(made.decode() + begins + chain)
    return file
