"""Whatever services do, and whatever they need of each other: the supervisor's promises, on trio's clock."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.plugins.services.order import Planned
from leafcuttr.plugins.services.service import READY_S, STOP_S
from leafcuttr.plugins.services.supervisor import Supervisor
from leafcuttr_sdk import ServiceSpec


class Behaviour(NamedTuple):
    """Of each start of a service in turn; the last one is that of all further ones. None: never."""

    ready_after: float | None
    fails_after: float | None
    how: type[BaseException] | None
    stops_after: float


class Plan(NamedTuple):
    needs: tuple[int, ...]
    starts: tuple[Behaviour, ...]


behaviours = st.builds(
    Behaviour,
    st.sampled_from([0.0, 0.3, 2.0, 40.0, None]),
    st.sampled_from([None, None, None, 0.0, 0.3, 2.0, 40.0]),
    st.sampled_from([None, OSError, SystemExit, ExceptionGroup]),
    st.sampled_from([0.0, 1.0, STOP_S - 1, STOP_S + 5]),
)


@st.composite
def plans(draw: st.DrawFn) -> list[Plan]:
    count = draw(st.integers(1, 5))
    return [
        Plan(
            tuple(sorted(draw(st.sets(st.integers(0, number - 1), max_size=2)))) if number else (),
            tuple(draw(st.lists(behaviours, min_size=1, max_size=3))),
        )
        for number in range(count)
    ]


class Played:
    """A service that behaves as it is told, and notes since when it runs and serves."""

    def __init__(self, world: World, number: int, behaviour: Behaviour) -> None:
        self.world, self.number, self.behaviour = world, number, behaviour

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        world, behaviour = self.world, self.behaviour
        self.began, self.ready = trio.current_time(), False
        # Kept for the end: what a service raises harms nobody.
        if not all(world.served[need] for need in world.plans[self.number].needs):
            world.broken.append(f"{self.number} before what it needs")
        if self.number in world.running:
            world.broken.append(f"{self.number} twice at once")
        world.running[self.number] = behaviour.stops_after
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.get_ready, task_status)
                if behaviour.fails_after is None:
                    await trio.sleep_forever()
                await trio.sleep(behaviour.fails_after)
                nursery.cancel_scope.cancel()
            if behaviour.how is ExceptionGroup:
                raise ExceptionGroup("several", [ValueError("one"), ValueError("other")])
            if behaviour.how is not None:
                raise behaviour.how("it")
        except BaseException as error:
            late = not self.ready and trio.current_time() >= self.began + READY_S
            if world.stopping and cancelled(error) and not late:
                await self.stop()
            raise
        finally:
            del world.running[self.number]

    async def stop(self) -> None:
        world = self.world
        if any(
            self.number in plan.needs and world.running.get(other, STOP_S) < STOP_S
            for other, plan in enumerate(world.plans)
        ):
            world.broken.append(f"{self.number} was stopped before those that need it")
        with trio.CancelScope(shield=True):
            await trio.sleep(self.behaviour.stops_after)

    async def get_ready(self, task_status: trio.TaskStatus[None]) -> None:
        if self.behaviour.ready_after is not None:
            await trio.sleep(self.behaviour.ready_after)
            self.world.served[self.number] = self.ready = True
            task_status.started()


def cancelled(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(cancelled(inner) for inner in error.exceptions)
    return isinstance(error, trio.Cancelled)


class World:
    def __init__(self, plans: list[Plan]) -> None:
        self.plans = plans
        self.served = [False] * len(plans)
        self.running: dict[int, float] = {}  # with the time that each takes to end
        self.stopping = False
        self.broken: list[str] = []

    def planned(self) -> list[Planned]:
        return [
            Planned(
                "p",
                ServiceSpec(str(number), self.maker(number, plan), tuple(str(need) for need in plan.needs)),
                None,  # type: ignore[arg-type]  # unused
            )
            for number, plan in enumerate(self.plans)
        ]

    def maker(self, number: int, plan: Plan) -> Any:
        left = list(plan.starts)
        return lambda _: Played(self, number, left.pop(0) if len(left) > 1 else left[0])


def depth(plans: list[Plan], number: int) -> int:
    return 1 + max((depth(plans, need) for need in plans[number].needs), default=0)


@given(plans(), st.sampled_from([0.0, 5.0, 200.0]), st.booleans(), st.randoms(use_true_random=False))
def test_promises(plans: list[Plan], for_s: float, by_cancelling: bool, chance: random.Random) -> None:
    world = World(plans)
    deepest = max(depth(plans, number) for number in range(len(plans)))

    async def main() -> None:
        supervisor = Supervisor(world.planned(), chance=chance)
        began = trio.current_time()
        with trio.CancelScope() as scope:
            async with supervisor.running():
                assert trio.current_time() - began <= deepest * (READY_S + 1) + 0.001
                await trio.sleep(for_s)
                for service in supervisor.services:
                    if service.up:
                        assert int(service.name) in world.running and not service.trouble
                world.stopping = True
                stopping = trio.current_time()
                if by_cancelling:
                    scope.cancel()
        assert trio.current_time() - stopping <= deepest * STOP_S + 0.001
        left = {int(service.name) for service in supervisor.left}
        assert world.running.keys() <= left, "ended or named"
        assert all(service.ended.is_set() for service in supervisor.services)
        await trio.sleep(2 * STOP_S + READY_S)  # what was left behind comes to its end
        assert not world.running, "none is started after the stop"
        assert world.broken == []

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
