"""The life of one service: made, run, failed, made again after a pause, stopped.

States, by what is set: nothing yet (it waits for what it needs, or starts); `up`; `trouble` (it failed, and pauses);
`refused` (its first start raised PluginError, and it is not tried again: the broker does not start); `ended`.

It runs in a system task of trio, which no nursery waits for: so one that does not end when it is cancelled can be left
behind, and the broker closes its data all the same. Everything that a service raises stays here, but for
KeyboardInterrupt where that is the program's (`runtime.plugin_parts`).
"""

import contextvars
import logging
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.plugins.services.backoff import Backoff
from leafcuttr.plugins.services.order import Planned
from leafcuttr.runtime.described import first_line, is_of, leaves_of
from leafcuttr.runtime.plugin_parts import Part, PartError, call, call_async, log_traceback
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.errors import AddressTakenError
from leafcuttr_sdk.plugin import StartFailure
from leafcuttr_sdk.services import Service

if TYPE_CHECKING:
    from leafcuttr.plugins.containment import Containment
    from leafcuttr.state.plugged import ChildState

logger = logging.getLogger(__name__)

READY_S: Final = 30.0
"""How long a service may take until it serves."""
STOP_S: Final = 5.0
"""How long it may take to end once it is cancelled."""


class SupervisedService:
    """One service. `attempted` is set once its first start is over, well or not, `served` once it has been up."""

    def __init__(
        self,
        planned: Planned,
        needs: Sequence["SupervisedService"],
        backoff: Backoff,
        containment: "Containment | None" = None,
        children: "Callable[[str], Sequence[ChildState]]" = lambda _: (),
    ) -> None:
        self.plugin: Final = planned.plugin
        self.part: Final = Part(planned.plugin, f"service {planned.spec.name}")
        self.name: Final = planned.spec.name
        self.needs: Final = needs
        self.attempted: Final = trio.Event()
        self.served: Final = trio.Event()
        self.ended: Final = trio.Event()
        self.up = False
        self.trouble = ""
        self.refused: str | None = None
        self.restarts = 0
        self.left = False
        self._planned = planned
        self._containment = containment
        self._children = children
        self._backoff = backoff
        self._scope: Final = trio.CancelScope()
        self._stopping = False
        self._up_since = 0.0
        self._service: Service | None = None

    def __str__(self) -> str:
        return str(self._planned)

    @property
    def blocks(self) -> int:
        """How often it has held the loop for too long."""
        return self._containment.watchdog.holds[self.part] if self._containment else 0

    @property
    def waits_for(self) -> str:
        """What it says that it lacks for now, while it is up; empty if nothing. It may be a property of the plugin's,
        so it is called as all that is the plugin's; one that raises is said to have failed."""
        if not self.up:
            return ""
        try:
            lacks: object = call(self.part, getattr, self._service, "waits_for", None)
        except PartError as failed:
            return f"what its waits_for says, which failed: {failed.brief}"
        if lacks is None or isinstance(lacks, str):
            return first_line(lacks or "")
        return f"what its waits_for says, which is {kind_of(lacks)} and no text"

    def start(self) -> None:
        """Begin its life; returns at once."""
        trio.lowlevel.spawn_system_task(self._live, name=f"the {self}", context=contextvars.copy_context())

    async def stop(self) -> None:
        """Cancel it, and wait until it has ended. One that takes longer than `STOP_S`, beside what the programs that
        its plugin runs may take, is named and left."""
        self._stopping = True
        patience_s = STOP_S + max((child.stop_s for child in self._children(self.plugin)), default=0.0)
        self._scope.cancel()
        with trio.move_on_after(patience_s):
            await self.ended.wait()
        if not self.ended.is_set():
            self.left = True
            self.ended.set()
            logger.error(
                "the %s has not ended %.0f s after it was told to: it is left behind", self, patience_s
            )

    async def _live(self) -> None:
        try:
            with self._scope:
                await self._wait_for_needs()
                while not self.refused:
                    pause_s = await self._once()
                    await trio.sleep(pause_s)
                    self.restarts += 1
        except trio.Cancelled:
            raise  # the whole run of trio ends
        except BaseException as error:
            interrupt = next((leaf for leaf in leaves_of(error) if isinstance(leaf, KeyboardInterrupt)), None)
            if interrupt is not None:
                self.trouble = "KeyboardInterrupt"
                if self._containment is not None:
                    self._containment.interrupt(interrupt)
            else:
                # Nothing else that a service raises gets here; and whatever does must not end the run of trio.
                logger.exception("watching over the %s failed", self)
        finally:
            self.up = False
            self.attempted.set()
            self.ended.set()

    async def _wait_for_needs(self) -> None:
        for need in self.needs:
            await need.attempted.wait()
            if not need.served.is_set():
                self.trouble = f"it waits for the service {need.name}"
                self.attempted.set()
        for need in self.needs:
            await need.served.wait()
        self.trouble = ""

    async def _once(self) -> float:
        """Make it and run it until it fails. Returns the pause until the next start, in seconds."""
        try:
            await call_async(self.part, self._run)
        except PartError as failed:
            return self._failed(failed)
        if trio.current_effective_deadline() > -inf:
            return self._failed(
                PartError(self.part, "it ended as if it had been cancelled, which it had not")
            )
        return 0.0  # it was cancelled, as the next checkpoint will say

    async def _run(self) -> None:
        """Raises what ended it."""
        self._service = service = self._planned.spec.make(self._planned.broker)
        async with trio.open_nursery() as nursery:
            with trio.move_on_after(READY_S) as starting:
                await nursery.start(self._serve, service)
            if starting.cancelled_caught:
                raise PartError(self.part, f"it was not ready within {READY_S:.0f} s")
            self._now_up()

    async def _serve(self, service: Service, *, task_status: trio.TaskStatus[None]) -> None:
        await service.run(task_status=task_status)
        if self._stopping:
            await trio.sleep_forever()  # to be cancelled, which is how it should have ended
        raise PartError(self.part, "it returned" if self.up else "it returned before it was ready")

    def _failed(self, failed: PartError) -> float:
        up_s = trio.current_time() - self._up_since if self.up else 0.0
        self.up, self.trouble = False, failed.brief
        log_traceback(failed)
        if self._stopping:
            logger.warning("the %s failed as it was stopped: %s", self, failed.why)
            return 0.0
        if not self.attempted.is_set() and _kind(failed) in self._planned.stops_start:
            self.refused = self.trouble
            return 0.0
        pause_s = self._backoff.pause_s(up_s)
        line = "the %s failed: %s; it is started again in %.1f s (restart %d)"
        logger.error(line, self, failed.why, pause_s, self.restarts + 1)
        self.attempted.set()
        return pause_s

    def _now_up(self) -> None:
        self.up, self.trouble, self._up_since = True, "", trio.current_time()
        if self.restarts:
            logger.warning("the %s is up again", self)
        self.served.set()
        self.attempted.set()


def _kind(failed: PartError) -> StartFailure:
    """Which failure it is, at a first start."""
    if failed.said is None:
        return StartFailure.FAILED
    return StartFailure.TAKEN if is_of(failed.said, AddressTakenError) else StartFailure.REFUSED
