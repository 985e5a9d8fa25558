"""What a client may do, by the rules of Kafka's StandardAuthorizer. No I/O.

- A super user may do everything.
- The ACLs that count are those of the resource's name: literal ones, those of the literal name `*`, and prefixed ones
  whose name it begins with; for the client's principal or `User:*`; from its address or `*`.
- One that denies wins over all that allow. To allow READ, WRITE, DELETE or ALTER allows DESCRIBE too, and to allow
  ALTER_CONFIGS allows DESCRIBE_CONFIGS; what is denied implies nothing.
- Where no ACL counts the answer is no. Only of a resource for which there is no ACL at all, of whatever principal, may
  everybody do everything, if `allow.everyone.if.no.acl.found` says so.

For each principal, address and resource all operations are decided at once (`acl_rules`) and remembered until an ACL
changes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from leafcuttr.state.identity import ClientIdentity
from leafcuttr.state.security.acl import Acl, AclOperation, AclResourceType
from leafcuttr.state.security.acl_rules import AclRules
from leafcuttr.state.security.acls import Acls
from leafcuttr_sdk.principals import Principal

# What is remembered at most: some megabytes, whatever names clients send.
_MOST_REMEMBERED: Final = 10_000
_LONGEST_REMEMBERED: Final = 300


class StandardAuthorizer:
    """See the module. `version` grows with each change of what it answers."""

    def __init__(self, acls: Acls, super_users: Iterable[str], *, allow_if_no_acl: bool) -> None:
        self.acls = acls
        self.rules = AclRules(acls, super_users, allow_if_no_acl=allow_if_no_acl)
        self.version = 0
        self._remembered: dict[tuple[Principal, str], _Remembered] = {}
        self._left_to_remember = _MOST_REMEMBERED
        acls.on_change(self._changed)

    def allows(
        self, client: ClientIdentity, operation: AclOperation, resource_type: AclResourceType, name: str
    ) -> bool:
        return bool(self.operations(client, resource_type, name) >> operation & 1)

    def operations(self, client: ClientIdentity, resource_type: AclResourceType, name: str) -> int:
        """All that the client may do on a resource, as a bit set (KIP-430)."""
        known = self._remembered.get((client.principal, client.host))
        if known is not None:
            found = known.operations.get((resource_type, name))
            if found is not None:
                return found
        found = self.rules.operations(str(client.principal), client.host, resource_type, name)
        if len(name) <= _LONGEST_REMEMBERED:
            self._of_client(client).operations[resource_type, name] = found
        return found

    def allows_on_some(
        self, client: ClientIdentity, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        """Whether the client may do this on a resource of this type, whichever (KIP-679), as far as ACLs can tell."""
        known = self._remembered.get((client.principal, client.host))
        found = None if known is None else known.on_some.get((resource_type, operation))
        if found is None:
            found = self.rules.on_some(str(client.principal), client.host, operation, resource_type)
            self._of_client(client).on_some[resource_type, operation] = found
        return found

    def on_change(self, call: Callable[[], None]) -> None:
        """Have it called after each change of what it answers."""
        self.acls.on_change(lambda new, gone: call())

    def rule(
        self, client: ClientIdentity, operation: AclOperation, resource_type: AclResourceType, name: str
    ) -> str:
        """What decides, in words."""
        return self.rules.verdict(str(client.principal), client.host, operation, resource_type, name).rule

    def _changed(self, new: Sequence[Acl], gone: Sequence[Acl]) -> None:
        for acl in gone:
            self.rules.remove(acl)
        for acl in new:
            self.rules.add(acl)
        self._forget()
        self.version += 1

    def _of_client(self, client: ClientIdentity) -> "_Remembered":
        """Where one more thing of this client is remembered. At the limit all else is forgotten."""
        if self._left_to_remember < 2:  # the thing, and the client if it is new
            self._forget()
        self._left_to_remember -= 1
        known = self._remembered.get((client.principal, client.host))
        if known is None:
            self._left_to_remember -= 1
            known = self._remembered[client.principal, client.host] = _Remembered()
        return known

    def _forget(self) -> None:
        self._remembered.clear()
        self._left_to_remember = _MOST_REMEMBERED


class _Remembered:
    """What has been decided for one principal from one address."""

    __slots__ = ("on_some", "operations")

    def __init__(self) -> None:
        self.operations: dict[tuple[AclResourceType, str], int] = {}
        self.on_some: dict[tuple[AclResourceType, AclOperation], bool] = {}
