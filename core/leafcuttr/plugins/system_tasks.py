"""System tasks that plugins spawn: one that raises would end the whole run of trio, and with it the broker.

trio tells an instrument of each task before its first step, and the coroutine of a system task gets another one around
it there. Whose the task is, says the part that spawns it. Where none does (a thread of the plugin's, a callback of
`TrioToken.run_sync_soon`), the traceback of what it raises does. System tasks of the program that has the broker in it
are left alone.
"""

import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from traceback import walk_tb
from typing import Any

import trio

from leafcuttr.runtime.described import cause_of, is_of, leaves_of, traceback_of
from leafcuttr.runtime.frames import first_named, outward, package_in
from leafcuttr.runtime.plugin_parts import Failures, Part, PartError, call_async, failure, owner, part_in


class SystemTasks(trio.abc.Instrument):
    """For the loop that it is made on. `packages` are those of plugins, with the names of the plugins; `interrupt` gets
    KeyboardInterrupt where that is the program's."""

    def __init__(
        self,
        packages: Mapping[str, str],
        failures: Failures,
        interrupt: Callable[[KeyboardInterrupt], None],
    ) -> None:
        self._root = trio.lowlevel.current_root_task()
        self._packages = packages
        self._failures = failures
        self._interrupt = interrupt

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        nursery = task.parent_nursery
        if nursery is None or nursery.parent_task is not self._root or _is_ours(task.coro):
            return
        part = owner.get() or part_in(outward(sys._getframe()))
        part = part and Part(part.plugin, f"system task {task.name}")
        contained: Any = self._contained(task.coro, task.name, part)
        task.coro = contained

    async def _contained(self, task: Coroutine[Any, Any, Any], name: str, part: Part | None) -> None:
        try:
            try:
                await (task if part is None else call_async(part, _awaited, task))
            except PartError:
                raise
            except BaseException as error:
                plugin = part.plugin if part else self._plugin_in(error)
                if plugin is None:
                    raise
                raise failure(Part(plugin, f"system task {name}"), error) from error
        except PartError as failed:
            self._failures(failed)
        except BaseException as error:
            interrupt = next((leaf for leaf in leaves_of(error) if is_of(leaf, KeyboardInterrupt)), None)
            if interrupt is None:
                raise
            self._interrupt(interrupt)

    def _plugin_in(self, error: BaseException) -> str | None:
        """The plugin whose code has raised it."""
        for each in _with_causes(error):
            plugin = first_named((frame for frame, _ in walk_tb(traceback_of(each))), self._packages)
            if plugin is not None:
                return plugin
        return None


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """What is in it, and behind it: Python makes RuntimeError of a StopIteration that leaves a coroutine."""
    for leaf in (error, *leaves_of(error)):
        yield leaf
        cause = cause_of(leaf)
        if cause is not None:
            yield cause


async def _awaited(task: Coroutine[Any, Any, Any]) -> None:
    await task


def _is_ours(coroutine: Any) -> bool:
    frame = getattr(coroutine, "cr_frame", None)
    return frame is None or package_in(frame) == "leafcuttr"
