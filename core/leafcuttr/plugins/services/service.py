"""The life of one service: made, run, failed, made again after a pause, stopped.

States, by what is set: nothing yet (it waits for what it needs, or starts); `up`; `trouble` (it failed, and pauses);
`refused` (its first start raised PluginError, and it is not tried again: the broker does not start); `ended`.

It runs in a system task of trio, which no nursery waits for: so one that does not end when it is cancelled can be left
behind, and the broker closes its data all the same. Everything that a service raises stays here.
"""

import contextvars
import logging
from collections.abc import Sequence
from math import inf
from typing import Final

import trio

from leafcuttr.plugins.services.backoff import Backoff
from leafcuttr.plugins.services.order import Planned
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.services import Service

logger = logging.getLogger(__name__)

READY_S: Final = 30.0
"""How long a service may take until it serves."""
STOP_S: Final = 5.0
"""How long it may take to end once it is cancelled."""


class SupervisedService:
    """One service. `attempted` is set once its first start is over, well or not, `served` once it has been up."""

    def __init__(self, planned: Planned, needs: Sequence["SupervisedService"], backoff: Backoff) -> None:
        self.plugin: Final = planned.plugin
        self.name: Final = planned.spec.name
        self.needs: Final = needs
        self.attempted: Final = trio.Event()
        self.served: Final = trio.Event()
        self.ended: Final = trio.Event()
        self.up = False
        self.trouble = ""
        self.refused: str | None = None
        self.restarts = 0
        self.blocks = 0
        self.left = False
        self.task: trio.lowlevel.Task | None = None
        self._planned = planned
        self._backoff = backoff
        self._scope: Final = trio.CancelScope()
        self._stopping = False
        self._up_since = 0.0

    def __str__(self) -> str:
        return str(self._planned)

    @property
    def package(self) -> str | None:
        """The top-level package, or module, of the plugin's code; None if that cannot be told."""
        package = str(getattr(self._planned.spec.make, "__module__", "") or "").partition(".")[0]
        return package if package not in ("", "leafcuttr", "functools") else None

    def start(self) -> None:
        """Begin its life; returns at once."""
        self.task = trio.lowlevel.spawn_system_task(
            self._live, name=f"the {self}", context=contextvars.copy_context()
        )

    async def stop(self) -> None:
        """Cancel it, and wait until it has ended. One that takes longer than `STOP_S` is named and left."""
        self._stopping = True
        self._scope.cancel()
        with trio.move_on_after(STOP_S):
            await self.ended.wait()
        if not self.ended.is_set():
            self.left = True
            self.ended.set()
            logger.error("the %s has not ended %.0f s after it was told to: it is left behind", self, STOP_S)

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
        except BaseException:
            # Nothing that a service raises gets here; and whatever does must not end the run of trio.
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
            await self._run()
            if trio.current_effective_deadline() > -inf:
                raise _EndedError("it ended as if it had been cancelled, which it had not")
        except BaseException as error:
            leaves = _leaves(error)
            if any(isinstance(leaf, trio.Cancelled) for leaf in leaves):
                raise
            return self._failed(error, leaves)
        return 0.0  # it was cancelled, as the next checkpoint will say

    async def _run(self) -> None:
        """Raises what ended it."""
        service = self._planned.spec.make(self._planned.broker)
        async with trio.open_nursery() as nursery:
            with trio.move_on_after(READY_S) as starting:
                await nursery.start(self._serve, service)
            if starting.cancelled_caught:
                raise _EndedError(f"it was not ready within {READY_S:.0f} s")
            self._now_up()

    async def _serve(self, service: Service, *, task_status: trio.TaskStatus[None]) -> None:
        await service.run(task_status=task_status)
        if self._stopping:
            await trio.sleep_forever()  # to be cancelled, which is how it should have ended
        raise _EndedError("it returned" if self.up else "it returned before it was ready")

    def _failed(self, error: BaseException, leaves: Sequence[BaseException]) -> float:
        up_s = trio.current_time() - self._up_since if self.up else 0.0
        self.up, self.trouble = False, in_one_line(leaves)
        logger.debug("the %s failed", self, exc_info=error)
        if self._stopping:
            logger.warning("the %s failed as it was stopped: %s", self, self.trouble)
            return 0.0
        if not self.attempted.is_set() and any(isinstance(leaf, PluginError) for leaf in leaves):
            self.refused = self.trouble
            return 0.0
        pause_s = self._backoff.pause_s(up_s)
        logger.error("the %s failed: %s; it is started again in %.1f s", self, self.trouble, pause_s)
        self.attempted.set()
        return pause_s

    def _now_up(self) -> None:
        self.up, self.trouble, self._up_since = True, "", trio.current_time()
        if self.restarts:
            logger.warning("the %s is up again", self)
        self.served.set()
        self.attempted.set()


class _EndedError(Exception):
    """It has ended, or was ended, and raised nothing."""


def in_one_line(leaves: Sequence[BaseException]) -> str:
    """What went wrong: the words of a PluginError, else the type and the words of the first that was raised."""
    first = next((leaf for leaf in leaves if isinstance(leaf, PluginError | _EndedError)), leaves[0])
    name = type(first).__name__
    words = next(iter(str(first).strip().splitlines()), "")
    if isinstance(first, PluginError | _EndedError):
        return words or name
    return f"{name}: {words}" if words else name


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
