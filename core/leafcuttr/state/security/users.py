"""Users that can log in, by their SCRAM credentials. In memory after what is on the disk: a change is published once it
is committed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import trio

from leafcuttr.state.metadata import MetadataStore, StoredScramCredential
from leafcuttr.state.security.credential_shapes import CredentialShape, CredentialShapes, shape_of
from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism

_MECHANISMS: Final = {one.value: one for one in ScramMechanism}

Credentials = Mapping[ScramMechanism, ScramCredential]


class CredentialUpsertion(NamedTuple):
    """Give the user this credential, in the place of one of the same mechanism."""

    name: str
    mechanism: ScramMechanism
    credential: ScramCredential


class CredentialDeletion(NamedTuple):
    name: str
    mechanism: ScramMechanism


class Users:
    """See the module."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._by_name: dict[str, dict[ScramMechanism, ScramCredential]] = {}
        self._callbacks: list[Callable[[str], None]] = []
        for one in metadata.scram_credentials():
            credential = ScramCredential(one.salt, one.stored_key, one.server_key, one.iterations)
            self._by_name.setdefault(one.name, {})[_MECHANISMS[one.mechanism]] = credential
        self._turn: Final = trio.Lock()
        self._secret: bytes | None = None
        self._shapes: dict[ScramMechanism | None, CredentialShapes] | None = None  # made at the first use

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def names(self) -> list[str]:
        """Sorted."""
        return sorted(self._by_name)

    def credentials(self, name: str) -> Credentials:
        """By mechanism; none for a user that there is not."""
        return self._by_name.get(name, {})

    def has(self, name: str, credential: ScramCredential) -> bool:
        """Whether the user still has this very one. The same password, given again, is another credential."""
        return any(one is credential for one in self.credentials(name).values())

    async def have_secret(self, limiter: trio.CapacityLimiter) -> None:
        """So that `secret` does not block: where it is made the disk is written."""
        if self._secret is None:
            await trio.to_thread.run_sync(lambda: self.secret, limiter=limiter)

    @property
    def secret(self) -> bytes:
        """Known to this data directory only. Made at the first use, which blocks."""
        if self._secret is None:
            self._secret = self._metadata.secret("unknown users")
        return self._secret

    def shape_of_nobody(
        self, name: str, mechanism: ScramMechanism | None, otherwise: CredentialShape
    ) -> CredentialShape:
        """What the credential of a name that no user has is to look like: as those of the users for this mechanism;
        None: as the one that each of them has for PLAIN (`of_plain`)."""
        if self._shapes is None:
            self._shapes = {each: CredentialShapes() for each in (None, *ScramMechanism)}
            for credentials in self._by_name.values():
                self._count(credentials, 1)
        return self._shapes[mechanism].chosen(name, self.secret, otherwise)

    def on_change(self, call: Callable[[str], None]) -> None:
        """`call` gets the name of a user whose credentials have changed, after each change."""
        self._callbacks.append(call)

    async def alter(
        self, upsertions: Sequence[CredentialUpsertion], deletions: Sequence[CredentialDeletion]
    ) -> None:
        """All of them or none. Raises StorageError. Cancelled: they may have been stored, and are in use if so."""
        with trio.CancelScope(shield=True):
            async with self._turn:
                await trio.to_thread.run_sync(self._store, upsertions, deletions)
                self._publish(upsertions, deletions)

    def _store(
        self, upsertions: Iterable[CredentialUpsertion], deletions: Iterable[CredentialDeletion]
    ) -> None:
        self._metadata.set_scram_credentials(
            [
                StoredScramCredential(name, int(number), *credential)
                for name, number, credential in upsertions
            ],
            [(name, int(number)) for name, number in deletions],
        )

    def _publish(
        self, upsertions: Iterable[CredentialUpsertion], deletions: Iterable[CredentialDeletion]
    ) -> None:
        changed: dict[str, None] = {}
        for name, mechanism in deletions:
            found = dict(self._by_name.get(name, {}))
            found.pop(mechanism, None)
            self._put(name, found)
            changed[name] = None
        for name, mechanism, credential in upsertions:
            self._put(name, {**self._by_name.get(name, {}), mechanism: credential})
            changed[name] = None
        for name in changed:
            for call in self._callbacks:
                call(name)

    def _put(self, name: str, credentials: dict[ScramMechanism, ScramCredential]) -> None:
        self._count(self._by_name.get(name, {}), -1)
        self._count(credentials, 1)
        if credentials:
            self._by_name[name] = credentials
        else:
            self._by_name.pop(name, None)

    def _count(self, credentials: Credentials, change: int) -> None:
        if self._shapes is None or not credentials:
            return
        for mechanism, credential in credentials.items():
            self._shapes[mechanism].count(shape_of(mechanism, credential), change)
        self._shapes[None].count(shape_of(*of_plain(credentials)), change)


def of_plain(credentials: Credentials) -> tuple[ScramMechanism, ScramCredential]:
    """The one of a user's credentials that a password of PLAIN is compared with."""
    first = min(credentials)
    return first, credentials[first]
