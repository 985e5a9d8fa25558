"""Which brokers a command talks to, as one value."""

from dataclasses import dataclass

from leafcuttr_sdk._cli_options import TIMEOUT_S as TIMEOUT_S


@dataclass(frozen=True)
class Target:
    """Where the brokers are, with which settings of librdkafka, and how many seconds an answer may take."""

    address: str
    properties: tuple[str, ...] = ()
    timeout: float = TIMEOUT_S
