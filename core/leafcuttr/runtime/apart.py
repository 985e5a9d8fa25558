"""Run what calls into plugins so that it can be left behind: a plugin's task may refuse to end when it is cancelled (a
shielded scope, a worker thread), and the data has to be closed all the same."""

from collections.abc import Awaitable, Callable, Iterator
from contextvars import copy_context
from typing import Final

import trio

from leafcuttr.runtime.plugin_parts import Part, owner

STOP_S: Final = 2.0
"""How long it may take to end once it is cancelled."""


async def run_apart(
    function: Callable[[], Awaitable[object]], name: str, leave: Callable[[list[Part]], None]
) -> None:
    """Run it until it ends, in a system task of trio, which no nursery waits for. Raises what it raises.

    Cancelled: it is cancelled, and after `STOP_S` no longer waited for. Then `leave` gets the parts of plugins whose
    tasks have not ended, and they may go on until the process ends.
    """
    ended, scope, raised = trio.Event(), trio.CancelScope(), list[BaseException]()

    async def live() -> None:
        try:
            with scope:
                await function()
        except trio.Cancelled:
            raise  # the whole run of trio ends
        except BaseException as error:
            raised.append(error)
        finally:
            ended.set()

    task = trio.lowlevel.spawn_system_task(live, name=name, context=copy_context())
    try:
        await ended.wait()
    finally:
        scope.cancel()
        with trio.move_on_after(STOP_S, shield=True):
            await ended.wait()
        if not ended.is_set():
            leave(list(dict.fromkeys(parts_in(task))))
        if raised:
            raise raised.pop()


def parts_in(root: trio.lowlevel.Task) -> Iterator[Part]:
    """Whose the tasks are, of this one and those below it. Any thread, while none of them runs."""
    for task in tasks_below(root):
        part = task.context.get(owner)
        if part is not None:
            yield part


def tasks_below(root: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    """The task and those in its nurseries, and in theirs. The loop stands still meanwhile."""
    found = [root]
    while found:
        task = found.pop()
        yield task
        for nursery in list(task.child_nurseries):
            found.extend(list(nursery.child_tasks))
