"""All services of all plugins: started in the order of what they need, watched, and stopped in reverse.

Each starts as soon as those that it needs serve, so those that need nothing of each other start side by side. The
broker waits for every first start, well or not; a PluginError of a first start stops the broker's, as a listener whose
port is taken does. What fails later, or in any other way, is tried again, and harms no other.
"""

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.errors import StartError
from leafcuttr.plugins.services.backoff import Backoff
from leafcuttr.plugins.services.order import Planned, in_order
from leafcuttr.plugins.services.service import READY_S, SupervisedService

if TYPE_CHECKING:
    from leafcuttr.plugins.containment import Containment
    from leafcuttr.state.plugged import ChildState

# Beside what the service itself may take: one that cannot be cancelled must not keep the broker from starting.
_PATIENCE_S: Final = 1.0


class Supervisor:
    """`services` are in the order in which they are started."""

    def __init__(
        self,
        planned: Sequence[Planned],
        *,
        chance: random.Random | None = None,
        containment: "Containment | None" = None,
        children: "Callable[[str], Sequence[ChildState]]" = lambda _: (),
    ) -> None:
        """`children` are the programs that a plugin runs. Raises CannotStart: see `in_order`."""
        chance = random.Random() if chance is None else chance
        made: dict[str, SupervisedService] = {}
        for one in in_order(planned):
            needs = [made[need] for need in dict.fromkeys(one.spec.needs)]
            made[one.spec.name] = SupervisedService(one, needs, Backoff(chance), containment, children)
        self.services: Final = list(made.values())
        self._containment = containment

    @property
    def left(self) -> list[SupervisedService]:
        """Those that did not end in time. Until the process ends they may go on."""
        return [service for service in self.services if service.left]

    @asynccontextmanager
    async def running(self, stop: trio.Event | None = None) -> AsyncIterator[None]:
        """Start all, and stop them at the end, also when that is a cancellation. Once `stop` is set no start is waited
        for any longer. Raises StartError where a service knows why it cannot start."""
        try:
            for service in self.services:
                service.start()
            await self._first_starts(trio.Event() if stop is None else stop)
            if self._containment is not None:
                self._containment.started()
            yield
        finally:
            with trio.CancelScope(shield=True):
                await self._stop()

    async def _first_starts(self, stop: trio.Event) -> None:
        depth: dict[SupervisedService, int] = {}
        async with trio.open_nursery() as watching:
            watching.start_soon(cancel_once, stop, watching.cancel_scope)
            async with trio.open_nursery() as starts:
                for service in self.services:
                    depth[service] = 1 + max((depth[need] for need in service.needs), default=0)
                    starts.start_soon(_first_start, service, depth[service], starts.cancel_scope)
            watching.cancel_scope.cancel()
        for service in self.services:
            if service.refused is not None:
                raise StartError(f"{service}: {service.refused}")

    async def _stop(self) -> None:
        async with trio.open_nursery() as nursery:
            for service in self.services:
                nursery.start_soon(self._stop_after_dependents, service)

    async def _stop_after_dependents(self, service: SupervisedService) -> None:
        for other in self.services:
            if service in other.needs:
                await other.ended.wait()
        await service.stop()


async def _first_start(service: SupervisedService, depth: int, others: trio.CancelScope) -> None:
    with trio.move_on_after(depth * (READY_S + _PATIENCE_S)):
        await service.attempted.wait()
    if service.refused is not None:
        others.cancel()


async def cancel_once(event: trio.Event, scope: trio.CancelScope) -> None:
    """Wait for the event, then cancel the scope."""
    await event.wait()
    scope.cancel()
