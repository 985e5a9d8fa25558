"""The ACLs of this broker. In memory after what is on the disk: a change is published once it is committed."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import trio

from leafcuttr.errors import InvalidRequest
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.metadata import MetadataStore, StoredAcl
from leafcuttr.state.security.acl import (
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)

MOST_AT_ONCE: Final = 10_000
"""As many as Kafka's controller changes for one request."""
# One ACL is in the answer to each filter that takes it, so a short request could have an answer of any length.
_MOST_TAKEN: Final = 5 * MOST_AT_ONCE
_OPERATIONS: Final = {int(one): one for one in AclOperation}
_PERMISSIONS: Final = {int(one): one for one in AclPermission}
_PATTERNS: Final = {int(one): one for one in PatternType}
_TYPES: Final = {int(one): one for one in AclResourceType}

OnChange = Callable[[Sequence[Acl], Sequence[Acl]], None]


class Acls:
    """See the module. In the order in which they were made, those of before the start first."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._all = dict.fromkeys(map(of_stored, metadata.acls()))
        self._callbacks: list[OnChange] = []
        self._turn: Final = trio.Lock()

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._all)

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._all

    def on_change(self, call: OnChange) -> None:
        """`call` gets the new ones and those that are gone, after each change."""
        self._callbacks.append(call)

    async def matching(self, wanted: AclFilter) -> list[Acl]:
        """Those that the filter takes, as they were at the call."""
        return [acl async for acl in Pace().over(list(self._all)) if wanted.takes(acl)]

    async def create(self, acls: Sequence[Acl]) -> None:
        """All of them or none; one that there is already stays. Raises StorageError. Cancelled: they may have been
        stored, and are in use if so."""
        with trio.CancelScope(shield=True):
            async with self._turn:
                new = [acl for acl in dict.fromkeys(acls) if acl not in self._all]
                if new:
                    await trio.to_thread.run_sync(self._metadata.change_acls, list(map(stored, new)), [])
                    self._publish(new, [])

    async def delete(self, filters: Sequence[AclFilter]) -> list[list[Acl]]:
        """All that some filter takes, or none; what each of them takes. Raises StorageError, and InvalidRequest for
        more than MOST_AT_ONCE. Cancelled: see `create`."""
        found: list[list[Acl]] = []
        with trio.CancelScope(shield=True):
            async with self._turn:
                found = await self._taken(filters)
                gone = list(dict.fromkeys(acl for taken in found for acl in taken))
                if len(gone) > MOST_AT_ONCE:
                    raise _too_many()
                if gone:
                    await trio.to_thread.run_sync(self._metadata.change_acls, [], list(map(stored, gone)))
                    self._publish([], gone)
        return found

    async def _taken(self, filters: Sequence[AclFilter]) -> list[list[Acl]]:
        found: list[list[Acl]] = []
        left = _MOST_TAKEN
        for wanted in filters:
            found.append(await self.matching(wanted))
            left -= len(found[-1])
            if left < 0:
                raise _too_many()
        return found

    def _publish(self, new: Sequence[Acl], gone: Sequence[Acl]) -> None:
        for acl in gone:
            del self._all[acl]
        self._all.update(dict.fromkeys(new))
        for call in self._callbacks:
            call(new, gone)


def _too_many() -> InvalidRequest:
    return InvalidRequest(f"Cannot remove more than {MOST_AT_ONCE} acls in a single delete operation.")


def stored(acl: Acl) -> StoredAcl:
    """As it is written to the disk."""
    resource_type, name, pattern_type, principal, host, operation, permission = acl
    return StoredAcl(
        int(resource_type), name, int(pattern_type), principal, host, int(operation), int(permission)
    )


def of_stored(row: StoredAcl) -> Acl:
    """As it was read from the disk."""
    return Acl(
        _TYPES[row.resource_type],
        row.name,
        _PATTERNS[row.pattern_type],
        row.principal,
        row.host,
        _OPERATIONS[row.operation],
        _PERMISSIONS[row.permission],
    )
