"""What a client may do where `lc.authorizer` names an authorizer of a plugin: super users may do everything, then the
plugin says yes, no, or nothing; then Kafka's rules decide, if `authorizer.class.name` names them, and nothing otherwise
is allowed. No I/O.

Until the plugin has brought its authorizer everybody but super users is denied. What it has answered is remembered
until it says that its answers have changed.
"""

from collections.abc import Callable, Iterable
from typing import Final

from leafcuttr.state.identity import ClientIdentity
from leafcuttr.state.security.acl import OPERATIONS_ON, AclOperation, AclResourceType
from leafcuttr.state.security.acl_rules import EVERYTHING
from leafcuttr.state.security.acls import Acls
from leafcuttr.state.security.authorizer import StandardAuthorizer
from leafcuttr_sdk import security
from leafcuttr_sdk.principals import Principal

Ask = Callable[[security.Requester, security.Operation, security.Resource], bool | None]
"""`Authorizer.verdict` of the SDK, that raises nothing."""
_OPERATIONS: Final = {AclOperation[one.name]: one for one in security.Operation}
_TYPES: Final = {AclResourceType[one.name]: one for one in security.ResourceType}
_MOST_REMEMBERED: Final = 10_000
_LONGEST_REMEMBERED: Final = 300
_Key = tuple[Principal, str, str, AclOperation, AclResourceType, str | None]


class PluggedAuthorizer:
    """See the module. `standard` are Kafka's rules."""

    def __init__(self, name: str, super_users: Iterable[str], standard: StandardAuthorizer | None) -> None:
        self.name: Final = name
        self.standard: Final = standard
        self._super_users = frozenset(super_users)
        self._ask: Ask = _denies
        self._changes = 0
        self._remembered: dict[_Key, bool | None] = {}
        self._callbacks: list[Callable[[], None]] = []

    @property
    def acls(self) -> Acls | None:
        """Those of Kafka's rules."""
        return None if self.standard is None else self.standard.acls

    @property
    def version(self) -> int:
        """Grows with each change of what it answers."""
        return self._changes + (0 if self.standard is None else self.standard.version)

    def equip(self, ask: Ask) -> None:
        """The plugin has brought it."""
        self._ask = ask
        self.changed()

    def changed(self) -> None:
        """What the plugin answers has changed."""
        self._remembered.clear()
        self._changes += 1
        for call in self._callbacks:
            call()

    def on_change(self, call: Callable[[], None]) -> None:
        """Have it called after each change of what it answers."""
        self._callbacks.append(call)
        if self.standard is not None:
            self.standard.on_change(call)

    def allows(
        self, client: ClientIdentity, operation: AclOperation, resource_type: AclResourceType, name: str
    ) -> bool:
        if str(client.principal) in self._super_users:
            return True
        said = self._said(client, operation, resource_type, name)
        if said is not None:
            return said
        return self.standard is not None and self.standard.allows(client, operation, resource_type, name)

    def operations(self, client: ClientIdentity, resource_type: AclResourceType, name: str) -> int:
        """All that the client may do on a resource, as a bit set (KIP-430)."""
        if str(client.principal) in self._super_users:
            return EVERYTHING
        known = OPERATIONS_ON[resource_type]
        return sum(
            1 << operation
            for operation in _OPERATIONS
            if known >> operation & 1 and self.allows(client, operation, resource_type, name)
        )

    def allows_on_some(
        self, client: ClientIdentity, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        """Whether the client may do this on a resource of this type, whichever (KIP-679)."""
        if str(client.principal) in self._super_users:
            return True
        said = self._said(client, operation, resource_type, None)
        if said is not None:
            return said
        return self.standard is not None and self.standard.allows_on_some(client, operation, resource_type)

    def rule(
        self, client: ClientIdentity, operation: AclOperation, resource_type: AclResourceType, name: str
    ) -> str:
        """What decides, in words."""
        if str(client.principal) in self._super_users:
            return "super user"
        if self._said(client, operation, resource_type, name) is not None:
            return f"the authorizer {self.name}"
        if self.standard is None:
            return f"the authorizer {self.name} has no opinion, and there are no ACLs"
        return self.standard.rule(client, operation, resource_type, name)

    def _said(
        self,
        client: ClientIdentity,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str | None,
    ) -> bool | None:
        key = (client.principal, client.host, client.listener_name, operation, resource_type, name)
        try:
            return self._remembered[key]
        except KeyError:
            pass
        requester = security.Requester(client.principal, client.host, client.listener_name)
        changes = self._changes
        said = self._ask(requester, _OPERATIONS[operation], security.Resource(_TYPES[resource_type], name))
        # One that says in the middle of its answer that its answers have changed is asked again next time.
        if changes == self._changes and (name is None or len(name) <= _LONGEST_REMEMBERED):
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = said
        return said


def _denies(*_: object) -> bool:
    return False
