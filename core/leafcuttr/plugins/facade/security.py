"""`leafcuttr_sdk.Security`: principals and rights, for plugins that have clients of their own."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.handlers.access import Right, client_may
from leafcuttr.plugins.facade.view import BrokerView
from leafcuttr.runtime.plugin_parts import Failures, Part, PartError, call
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.identity import IN_PROCESS, ClientIdentity
from leafcuttr.state.security.acl import AclOperation, AclResourceType
from leafcuttr.state.security.limits import ClientLimits
from leafcuttr_sdk.security import CLUSTER_NAME, LOCALHOST, Operation, ResourceType, denied

if TYPE_CHECKING:
    from leafcuttr.plugins.log_ins import LogIns
    from leafcuttr_sdk import Broker
    from leafcuttr_sdk.authentication import Authenticated, Credentials, Refused
    from leafcuttr_sdk.principals import Principal
    from leafcuttr_sdk.security import ClientQuota

_MOST_VIEWS: Final = 1000
_RIGHTS: Final = {
    (operation, kind): Right(AclOperation[operation.name], AclResourceType[kind.name])
    for operation in Operation
    for kind in ResourceType
}


class SecurityView:
    """For one plugin."""

    def __init__(self, core: Core, view: BrokerView, plugin: str) -> None:
        self._core = core
        self._view = view
        self._plugin = plugin
        self._acting: dict[ClientIdentity, Broker] = {}

    @property
    def authorizes(self) -> bool:
        return self._core.authorizer is not None

    @property
    def version(self) -> int:
        authorizer = self._core.authorizer
        return 0 if authorizer is None else authorizer.version

    def allowed(
        self,
        principal: "Principal",
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        host: str = LOCALHOST,
        quietly: bool = False,
    ) -> bool:
        if self._core.authorizer is None:
            return True
        client, right = _identity(principal, host), _RIGHTS[operation, resource_type]
        return client_may(self._core, client, self._plugin, right, name, quietly=quietly)

    def check(
        self,
        principal: "Principal",
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        host: str = LOCALHOST,
    ) -> None:
        if not self.allowed(principal, operation, resource_type, name, host=host):
            raise denied(principal, operation, resource_type, name)

    async def authenticate(self, credentials: "Credentials") -> "Authenticated | Refused":
        return await self._log_ins.authenticate(credentials)

    def acting_for(
        self, principal: "Principal", *, host: str = LOCALHOST, client_id: str | None = None
    ) -> "Broker":
        if self._core.authorizer is None and not self._core.quotas.of_clients:
            return self._view
        client = _identity(principal, host, client_id)
        found = self._acting.get(client)
        if found is None:
            self._core.runtime.descriptors.import_late("leafcuttr.plugins.facade.acting.view")
            from leafcuttr.plugins.facade.acting.rights import Rights
            from leafcuttr.plugins.facade.acting.view import ActingView

            if len(self._acting) >= _MOST_VIEWS:
                self._acting.clear()
            found = ActingView(self._view, Rights(self._core, client, self._plugin))
            self._acting[client] = found
        return found

    def quota(self, principal: "Principal", client_id: str | None = None) -> "ClientQuota | None":
        limits = self._core.quotas.limits_of(principal.name, client_id)
        return None if limits is None else _Quota(limits)

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        part = Part(self._plugin, "callback on changed users and rights")
        return self._log_ins.on_change(partial(_tell, part, call, Failures()))

    @property
    def _log_ins(self) -> "LogIns":
        self._core.runtime.descriptors.import_late("leafcuttr.plugins.log_ins")
        from leafcuttr.plugins.log_ins import log_ins_of

        return log_ins_of(self._core)


class _Quota:
    """`ClientQuota`."""

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits

    def produced(self, size: int) -> None:
        self._limits.produced(size, trio.current_time())

    def consumed(self, size: int) -> None:
        self._limits.consumed(size, trio.current_time())

    @property
    def is_of_time(self) -> bool:
        return self._limits.request is not None

    def spent(self, seconds: float) -> None:
        if self._limits.request is not None and seconds > 0:
            self._limits.request.take(seconds, trio.current_time())

    def wait_s(self) -> float:
        now_s = trio.current_time()
        producer, consumer, request, _ = self._limits
        return max(
            (bucket.wait_s(now_s) for bucket in (producer, consumer, request) if bucket is not None),
            default=0.0,
        )


def _tell(part: Part, callback: Callable[[], None], failures: Failures) -> None:
    try:
        call(part, callback)
    except PartError as failed:
        failures(failed)


def _identity(principal: "Principal", host: str, client_id: str | None = None) -> ClientIdentity:
    return ClientIdentity(principal, IN_PROCESS, "PLAINTEXT", host, 0, client_id)
