"""Services: what a plugin runs beside the broker for as long as the broker runs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from leafcuttr_sdk._described import described

if TYPE_CHECKING:
    import trio

    from leafcuttr_sdk.broker import Broker


class Service(Protocol):
    """A service that has been made. `leafcuttr_sdk.testing.check_service` tests one against this contract.

    One that may lack something while it runs has an attribute or a property `waits_for` beside `run`, which a service
    that lacks nothing needs not have: None or a text that says what it waits for, in one line (`the schemas of 3 of
    5 topics`). While it is a text, `/health` is degraded and shows it as `it waits for ...`. It is read on the loop at
    each request of `/health`, so it says what is known.
    """

    async def run(self, *, task_status: "trio.TaskStatus[None]") -> None:
        """Run until cancelled. Call `task_status.started()` once it serves, within half a minute: the broker is not
        ready before. A service that has to catch up for longer calls it at once, and its plugin brings a `HealthCheck`
        with `required=True` that is not fine until then.

        To return or to raise is a failure: one line is logged, health says so, and a new one is made and run after a
        pause that grows. PluginError at the first start ends the start of the broker with its line, unless
        `Plugin.stops_start` says otherwise. Cancellation is the stop: end within five seconds, and leave nothing open.
        """
        ...


@described
class ServiceSpec(NamedTuple):
    """A service to be: what `leafcuttr_register_services` returns."""

    name: str
    """Unique among all services; where a plugin has one only, its own name."""

    make: "Callable[[Broker], Service]"
    """Makes it, at every start and restart. Imports what is heavy. It may raise PluginError with one line for the
    person, which is all that is then logged."""

    needs: tuple[str, ...] = ()
    """Services that are started before this one, and stopped after it."""
