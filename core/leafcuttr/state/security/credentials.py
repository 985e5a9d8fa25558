"""SCRAM credentials (RFC 5802) as values: what a broker stores of a password. How they are made is in `scram`."""

from enum import IntEnum
from typing import Final, NamedTuple


class ScramMechanism(IntEnum):
    """Kafka's numbers of them (KIP-554)."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        return self.name.removeprefix("SCRAM_").replace("_", "").lower()


BY_NAME: Final = {each.sasl_name: each for each in ScramMechanism}


class ScramCredential(NamedTuple):
    """What is stored; the password cannot be had of it, and who has it cannot log in with it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
