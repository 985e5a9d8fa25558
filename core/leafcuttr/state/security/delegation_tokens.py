"""Delegation tokens (KIP-48): what a user has made for programs that act for it, until it expires or is revoked.

A token is an id that anyone may know and an HMAC of it under `delegation.token.secret.key`, which is not stored: it
logs in by SCRAM, the id as the name and the HMAC, in base64, as the password. In memory after what is on the disk, as
`users`.
"""

import base64
import hmac
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import trio

from leafcuttr.config.settings import Settings
from leafcuttr.state.identity import Principal
from leafcuttr.state.metadata import MetadataStore, StoredDelegationToken
from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism
from leafcuttr_sdk import Clock

_LAST_MS: Final = 2**63 - 1


class DelegationToken(NamedTuple):
    """Times are in milliseconds since 1970. Until `expires_ms` it is good; it can be renewed up to `last_ms`."""

    id: str
    owner: Principal
    requester: Principal
    """Who made it; mostly the owner."""
    renewers: Sequence[Principal]
    issued_ms: int
    expires_ms: int
    last_ms: int

    def may_be_renewed_by(self, principal: Principal) -> bool:
        return principal == self.owner or principal in self.renewers

    @property
    def concerned(self) -> Sequence[Principal]:
        """For whom it is listed, and who may see it."""
        return (self.owner, self.requester, *self.renewers)

    def has_expired(self, now_ms: int) -> bool:
        return min(self.expires_ms, self.last_ms) < now_ms


class DelegationTokens:
    """See the module."""

    def __init__(self, metadata: MetadataStore, settings: Settings, clock: Clock) -> None:
        self._metadata = metadata
        self._settings = settings
        self._clock = clock
        self._secret = str(settings.value("delegation.token.secret.key")).encode()
        self._by_id: dict[str, DelegationToken] = {}
        self._ids: dict[bytes, str] = {}  # by HMAC
        self._credentials: dict[str, dict[ScramMechanism, ScramCredential]] = {}
        self._callbacks: list[Callable[[], None]] = []
        self._turn: Final = trio.Lock()
        for stored in metadata.delegation_tokens():
            self._put(_of(stored))

    def __iter__(self) -> Iterator[DelegationToken]:
        return iter(self._by_id.values())

    def get(self, token_id: str) -> DelegationToken | None:
        return self._by_id.get(token_id)

    def with_hmac(self, value: bytes) -> DelegationToken | None:
        token_id = self._ids.get(value)
        return None if token_id is None else self._by_id[token_id]

    def hmac_of(self, token: DelegationToken) -> bytes:
        return hmac.digest(self._secret, token.id.encode(), "sha512")

    def credential(self, token: DelegationToken, mechanism: ScramMechanism) -> ScramCredential:
        """What SCRAM checks for it. Takes milliseconds at the first use."""
        from leafcuttr.state.security.scram import LEAST_ITERATIONS, new_credential

        kept = self._credentials.get(token.id, {})
        found = kept.get(mechanism)
        if found is None:
            password = base64.b64encode(self.hmac_of(token))
            found = kept[mechanism] = new_credential(mechanism, password, LEAST_ITERATIONS)
        return found

    def holds(self, shown: DelegationToken) -> bool:
        """Whether a token that a client has shown is still good, and as long as it was then."""
        found = self._by_id.get(shown.id)
        return found is not None and found.expires_ms >= shown.expires_ms

    def on_change(self, call: Callable[[], None]) -> None:
        """Have this called after each change."""
        self._callbacks.append(call)

    async def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Sequence[Principal],
        most_ms: int,
    ) -> DelegationToken:
        """`most_ms` is how long it can be renewed; 0 or less: as long as the settings say. Raises StorageError."""
        now = self._clock.now_ms()
        lifetime = self._settings.int("delegation.token.max.lifetime.ms")
        last = _sum(now, min(lifetime, most_ms) if most_ms > 0 else lifetime)
        expires = min(last, _sum(now, self._settings.int("delegation.token.expiry.time.ms")))
        token_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        token = DelegationToken(token_id, owner, requester, tuple(renewers), now, expires, last)
        await self._store(token, is_new=True)
        return token

    async def renew(self, token: DelegationToken, period_ms: int) -> DelegationToken | None:
        """`period_ms` from now on, but not beyond its last time nor what the settings allow; 0 or less: as long as they
        say. None: it has been revoked meanwhile. Raises StorageError."""
        usual = self._settings.int("delegation.token.expiry.time.ms")
        return await self._expire_at(token, min(usual, period_ms) if period_ms > 0 else usual)

    async def expire(self, token: DelegationToken, period_ms: int) -> DelegationToken | None:
        """In `period_ms`; less than 0: now, and it is gone. None as for `renew`. Raises StorageError."""
        if period_ms >= 0:
            return await self._expire_at(token, period_ms)
        await self.remove([token])
        return token._replace(expires_ms=self._clock.now_ms())

    async def remove(self, tokens: Iterable[DelegationToken]) -> None:
        """Revoke them. Raises StorageError."""
        ids = [token.id for token in tokens]
        if not ids:
            return
        with trio.CancelScope(shield=True):
            async with self._turn:
                await trio.to_thread.run_sync(self._metadata.remove_delegation_tokens, ids)
                for token_id in ids:
                    token = self._by_id.pop(token_id, None)
                    self._credentials.pop(token_id, None)
                    if token is not None:
                        self._ids.pop(self.hmac_of(token), None)
                self._tell()

    async def remove_expired(self) -> None:
        """Raises StorageError."""
        now = self._clock.now_ms()
        await self.remove([token for token in self if token.has_expired(now)])

    async def _expire_at(self, token: DelegationToken, period_ms: int) -> DelegationToken | None:
        expires = min(token.last_ms, _sum(self._clock.now_ms(), period_ms))
        changed = token._replace(expires_ms=expires)
        return changed if await self._store(changed, is_new=False) else None

    async def _store(self, token: DelegationToken, *, is_new: bool) -> bool:
        """False: it is not new, and not there any more."""
        with trio.CancelScope(shield=True):
            await self._turn.acquire()
        try:
            if not is_new and token.id not in self._by_id:
                return False
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._metadata.set_delegation_token, _stored(token))
            self._put(token)
            self._tell()
            return True
        finally:
            self._turn.release()

    def _put(self, token: DelegationToken) -> None:
        self._by_id[token.id] = token
        self._ids[self.hmac_of(token)] = token.id
        self._credentials.setdefault(token.id, {})

    def _tell(self) -> None:
        for call in self._callbacks:
            call()


def _sum(now_ms: int, period_ms: int) -> int:
    return min(now_ms + period_ms, _LAST_MS)


def _stored(token: DelegationToken) -> StoredDelegationToken:
    return StoredDelegationToken(
        token.id,
        (token.owner.type, token.owner.name),
        (token.requester.type, token.requester.name),
        [(renewer.type, renewer.name) for renewer in token.renewers],
        token.issued_ms,
        token.expires_ms,
        token.last_ms,
    )


def _of(stored: StoredDelegationToken) -> DelegationToken:
    return DelegationToken(
        stored.id,
        Principal(*stored.owner),
        Principal(*stored.requester),
        tuple(Principal(*renewer) for renewer in stored.renewers),
        stored.issued_ms,
        stored.expires_ms,
        stored.last_ms,
    )
