"""The service `registry`: it reads its topic, then opens its port."""

from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_registry.api.front import Front
from leafcuttr_registry.provider import provider_of
from leafcuttr_registry.registry import Registry
from leafcuttr_registry.settings import PREFIX, read_options
from leafcuttr_registry.storage.topics import SCHEMAS
from leafcuttr_sdk.web.server import HttpServer

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.web.front import Application
    from leafcuttr_sdk.web.serving import Serving


WAITED_FOR_S: Final = 20.0
"""How long the start of the broker waits for the topic to be read; it allows a service 30 s."""


class RegistryService:
    """The service `registry`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._options = read_options(broker.settings)
        self._server = HttpServer(broker, PREFIX, name="registry", title="the schema registry")
        self._registry = Registry(broker)
        self._provider = provider_of(broker)
        self._following = trio.CancelScope()
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: "trio.TaskStatus[None]") -> None:
        status = _Once(task_status)
        await self._open(status)
        self._provider.registry = self._registry
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._follow, self._registry, self._following)
                await self._server.run(self._application, task_status=status)
        finally:
            self._provider.registry = None

    async def _open(self, status: "_Once") -> None:
        """Read the topic. The broker does not wait for one that takes long: it would end the service, which would begin
        anew each time."""

        async def no_longer_wait() -> None:
            await trio.sleep(WAITED_FOR_S)
            self._broker.logger.warning(
                "the schema registry has read %d records of %s in %.0f s and goes on; its port opens then",
                self._registry.reader.position,
                SCHEMAS,
                WAITED_FOR_S,
            )
            status.started()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(no_longer_wait)
            await self._registry.open()
            nursery.cancel_scope.cancel()

    async def restart(self) -> None:
        """Forget all that is known, and read it anew. Raises Refusal 50001, BrokerError."""
        assert self._nursery is not None
        registry, following = Registry(self._broker), trio.CancelScope()
        await registry.open()
        await self._registry.close()
        self._registry, before = registry, self._following
        self._provider.registry = registry
        self._following = following
        before.cancel()
        self._nursery.start_soon(self._follow, registry, following)

    @property
    def registry(self) -> Registry:
        return self._registry

    async def _follow(self, registry: Registry, scope: trio.CancelScope) -> None:
        with scope:
            await registry.follow()
            await self.restart()

    def _application(self, serving: "Serving") -> "Application":
        return Front(self, self._options, serving).application()


class _Once:
    """A task status that may be told twice."""

    def __init__(self, status: "trio.TaskStatus[None]") -> None:
        self._status = status
        self._told = False

    def started(self, value: None = None) -> None:
        if not self._told:
            self._told = True
            self._status.started(value)
