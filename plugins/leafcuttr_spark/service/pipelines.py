"""The service that runs a child for each file of the folder. What is wrong with one is a line of the log and of health,
and ends no other. The service ends with the broker only.
"""

import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.children import ChildError, Restart
from leafcuttr_sdk.errors import PluginError
from leafcuttr_spark.operating.exits import FINAL
from leafcuttr_spark.operating.status import RunStatus, read_status
from leafcuttr_spark.service.folder import FolderError, Found, scan, settled
from leafcuttr_spark.service.reports import PipelineReport, running_of
from leafcuttr_spark.service.settings import FOLDER, MEMORY, PROGRAM, SCAN, STOP

if TYPE_CHECKING:
    import trio

    from leafcuttr_sdk.broker import Broker

_BOUND_S: Final = 5.0
"""How long listeners are waited for: pipelines of this broker's topics connect to them."""


class PipelinesService:
    """The service `spark`."""

    def __init__(self, broker: "Broker") -> None:
        """Raises PluginError without the folder, or without Spark."""
        settings = broker.settings
        self._broker: Final = broker
        self._logger: Final = broker.logger
        self._folder: Final = Path(settings.text(FOLDER)).absolute()
        self._program: Final = settings.list(PROGRAM) or _own_program()
        self._stop_s: Final = settings.int(STOP) / 1000
        self._scan_s: Final = settings.int(SCAN) / 1000
        self._memory: Final = settings.int(MEMORY) if settings.int(MEMORY) > 0 else None
        self._running: Final = running_of(broker)
        self._wanted: dict[str, Found] = {}
        self._scopes: dict[str, trio.CancelScope] = {}
        if not self._folder.is_dir():
            raise PluginError(f"{FOLDER}={self._folder} is no folder")

    async def run(self, *, task_status: "trio.TaskStatus[None]") -> None:
        import trio

        task_status.started()
        try:
            await self._listeners_bound()
            with tempfile.TemporaryDirectory(prefix="leafcuttr-spark-") as kept:
                async with trio.open_nursery() as nursery:
                    await self._look_again_and_again(nursery, Path(kept))
        finally:
            self._running.reports.clear()
            self._running.trouble = ""

    async def _listeners_bound(self) -> None:
        import trio

        with trio.move_on_after(_BOUND_S):
            while not self._broker.cluster.listeners:  # noqa: ASYNC110 - there is no event for it
                await trio.sleep(0.02)

    async def _look_again_and_again(self, nursery: "trio.Nursery", kept: Path) -> None:
        import trio

        before: Mapping[str, Found] | None = None
        while True:
            try:
                found, statuses = await trio.to_thread.run_sync(
                    _look, self._folder, kept, tuple(self._running.reports), abandon_on_cancel=True
                )
            except FolderError as error:
                self._folder_trouble(str(error))
            else:
                self._folder_trouble("")
                for name, status in statuses.items():
                    if name in self._running.reports:
                        self._running.reports[name].told(status)
                # At the start there is nothing that a file could have been before.
                self._take(nursery, kept, found if before is None else settled(before, found), found)
                before = found
            await trio.sleep(self._scan_s)

    def _folder_trouble(self, line: str) -> None:
        if line and line != self._running.trouble:
            self._logger.error("%s; what runs goes on", line)
        self._running.trouble = line

    def _take(
        self, nursery: "trio.Nursery", kept: Path, sure: Mapping[str, Found], found: Mapping[str, Found]
    ) -> None:
        """Let the pipelines be those of the files. What is there and not sure stays as it is."""
        for name in [name for name in self._wanted if name not in found]:
            self._logger.info("pipeline %s: its file is gone; it is stopped", name)
            del self._wanted[name]
            self._scopes[name].cancel()
        for name, file in sure.items():
            if self._wanted.get(name) == file:
                continue
            self._wanted[name] = file
            if name in self._scopes:
                self._logger.info("pipeline %s: %s has changed; it is started again", name, file.path)
                self._scopes[name].cancel()
            else:
                self._scopes[name] = _new_scope()
                nursery.start_soon(self._keep, name, kept)

    async def _keep(self, name: str, kept: Path) -> None:
        """Run what the file says, and again once it says something else."""
        try:
            while (file := self._wanted.get(name)) is not None:
                report = self._running.reports[name] = PipelineReport(name, file.path)
                with self._scopes[name]:
                    await self._run(report, file, kept / f"{name}.json")
                self._scopes[name] = _new_scope()
        finally:
            del self._scopes[name]
            self._running.reports.pop(name, None)

    async def _run(self, report: PipelineReport, file: Found, status: Path) -> None:
        """Until the scope is cancelled, whatever becomes of the program."""
        import trio

        if file.trouble:
            report.refused = file.trouble
            self._logger.error("pipeline %s is not run: %s", report.name, file.trouble)
            await trio.sleep_forever()
        status.unlink(missing_ok=True)
        command = [*self._program, str(file.path), "--status-file", str(status)]
        try:
            async with self._broker.child(
                report.name,
                command,
                folder=self._folder,
                stop_s=self._stop_s,
                memory_bytes=self._memory,
                restart=Restart.ON_FAILURE,
                final_statuses=FINAL,
            ) as child:
                report.child = child
                await child.ended()
                report.is_over = True
                await trio.sleep_forever()
        except ChildError as error:
            report.refused = str(error)
            self._logger.error("pipeline %s is not run: %s", report.name, error)
            await trio.sleep_forever()


def _look(
    folder: Path, kept: Path, names: tuple[str, ...]
) -> tuple[dict[str, Found], dict[str, RunStatus | None]]:
    """In a worker thread: the folder may be on a slow disk. Raises FolderError."""
    statuses = {name: read_status(kept / f"{name}.json") for name in names}
    return scan(folder), statuses


def _new_scope() -> "trio.CancelScope":
    import trio

    return trio.CancelScope()


def _own_program() -> tuple[str, ...]:
    """That of this installation. Raises PluginError without Spark."""
    if find_spec("pyspark") is None:
        raise PluginError(
            f"pipelines need Spark, which is not installed: pip install 'leafcuttr[spark]', or name with {PROGRAM} the "
            "program of an environment that has it"
        )
    return (sys.executable, "-m", "leafcuttr", "spark", "run")
