"""All consumers of the proxy: each has a task that is its membership in a group, from its creation until it
is deleted, has been unused for long, or the proxy stops. They are in memory only, as with every such proxy."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

from leafcuttr_http.consumers.configuration import InstanceConfig
from leafcuttr_http.consumers.instance import Instance, no_consumer
from leafcuttr_http.errors import ApiError
from leafcuttr_http.proxy import Proxy

_LEAST_POLL_INTERVAL_MS: Final = 300_000
_SESSION_MS: Final = 45_000
_LAST_COMMIT_S: Final = 1.0


class Registry:
    """The instances by group and name."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._instances: dict[tuple[str, str], Instance | None] = {}
        self._came = trio.Event()
        self._runs = False

    async def _run(self) -> None:
        """Let go those that are idle, and all once the proxy stops. It begins with the first."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._expire)
            await self._proxy.closing.wait()
            nursery.cancel_scope.cancel()
        for instance in self._known():
            instance.end(deleted=False)

    async def create(self, group: str, config: InstanceConfig) -> Instance:
        """Raises ApiError: 40902, and 503 where there are too many."""
        name = config.name or f"rest-consumer-{uuid.uuid4()}"
        key = group, name
        if key in self._instances:
            raise ApiError(40902, f"There is a consumer {name!r} in group {group!r} already.")
        most = self._proxy.limits.consumers
        if len(self._instances) >= most or self._proxy.closing.is_set():
            raise ApiError(503, f"There are {most} consumers, as many as lc.http.proxy.consumer.max allows.")
        if not self._runs:
            self._runs = True
            self._proxy.nursery.start_soon(self._run)
        self._instances[key] = None  # no other request takes the name meanwhile
        instance = Instance(group, name, config, self._proxy.broker.logger, self._proxy.schemas)
        instance.owner = self._proxy.serving.principal
        try:
            await self._proxy.nursery.start(self._keep, instance)
        finally:
            if self._instances.get(key) is None:
                self._instances.pop(key, None)
        return instance

    @contextmanager
    def use(self, group: str, name: str) -> Iterator[Instance]:
        """For the time of a request. Raises ApiError 40403."""
        instance = self._own(group, name)
        instance.requests += 1
        try:
            yield instance
        finally:
            instance.requests -= 1
            instance.used_at = trio.current_time()

    def delete(self, group: str, name: str) -> None:
        """Raises ApiError 40403."""
        self._remove(self._own(group, name))

    def _own(self, group: str, name: str) -> Instance:
        """One that the client of this request has made. Raises ApiError 40403."""
        instance = self._instances.get((group, name))
        if instance is None or instance.owner != self._proxy.serving.principal:
            raise no_consumer(group, name)
        return instance

    def _remove(self, instance: Instance) -> None:
        del self._instances[instance.group, instance.name]
        instance.end(deleted=True)
        self._tell()

    async def _keep(self, instance: Instance, *, task_status: trio.TaskStatus[None]) -> None:
        """The life of one instance."""
        key, config = (instance.group, instance.name), instance.config
        broker, idle_ms = self._proxy.acting, round(self._proxy.limits.consumer_idle_s * 1000)
        try:
            async with broker.consumer(
                instance.group,
                auto_offset_reset=config.reset,
                session_timeout_ms=config.session_ms or _SESSION_MS,
                max_poll_interval_ms=config.poll_interval_ms or max(idle_ms, _LEAST_POLL_INTERVAL_MS),
                client_id=config.client_id or instance.name,
                instance_id=config.instance_id,
                committed=config.committed,
            ) as consumer:
                instance.consumer = consumer
                self._instances[key] = instance
                self._tell()
                self._came.set()
                task_status.started()
                await instance.ended.wait()
                with trio.move_on_after(_LAST_COMMIT_S, shield=True):
                    await instance.close()
        except Exception as error:
            if self._instances.get(key) is not instance:
                raise  # to the request that creates it
            # One consumer must not take the proxy with it.
            self._proxy.tell(error, f"consumer {instance.name} of group {instance.group}")
            instance.end(deleted=True)
        finally:
            if self._instances.get(key) is instance:
                del self._instances[key]
            self._tell()

    async def _expire(self) -> None:
        idle_s = self._proxy.limits.consumer_idle_s
        while True:
            now = trio.current_time()
            soonest = float("inf")
            for instance in self._known():
                until = (now if instance.requests else instance.used_at) + idle_s
                if until <= now:
                    self._proxy.broker.logger.info(
                        "consumer %s of group %s was not used for %g s: it is gone",
                        instance.name, instance.group, idle_s,
                    )  # fmt: skip
                    self._remove(instance)
                else:
                    soonest = min(soonest, until)
            self._came = trio.Event()
            with trio.move_on_at(soonest):
                await self._came.wait()

    def _tell(self) -> None:
        count = self._proxy.broker.metrics.gauge(
            "leafcuttr_http_consumers", "Consumers that clients of the HTTP proxy have."
        )
        count.set(len(self._known()))

    def _known(self) -> list[Instance]:
        return [each for each in self._instances.values() if each is not None]
