"""Principals: what rights are given to, and whom a task acts for. How a client becomes one is in `authentication`."""

from contextvars import ContextVar
from typing import Final, NamedTuple

from leafcuttr_sdk._described import described


@described
class Principal(NamedTuple):
    """Kafka's `KafkaPrincipal`: what rights are given to. Prints as Kafka writes it, `User:alice`."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""A client that has not authenticated."""


_acting_for: Final[ContextVar[Principal | None]] = ContextVar("leafcuttr_principal", default=None)


def current_principal() -> Principal | None:
    """The principal of the client whose request is being served in this task: also in record filters and validators,
    for records that are produced with `Broker.produce` and its like. None where no client has authenticated."""
    return _acting_for.get()


def act_for(principal: Principal | None) -> None:
    """From here on this task, and the tasks that it starts, act for this principal. For services that authenticate
    their clients themselves; those of `leafcuttr_sdk.web` need not call it."""
    _acting_for.set(principal)
