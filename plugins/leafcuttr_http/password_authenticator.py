"""The authenticator `http-passwords`: names and passwords against the file of `lc.http.proxy.passwords.file`.

What was right is remembered for a minute, so that a client pays for scrypt once a minute and not with each request; a
name whose line changes is checked anew at once.
"""

import hashlib
import os
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_http.passwords import Hash, nobody, read_passwords
from leafcuttr_http.settings import AUTHENTICATORS, PASSWORDS_FILE, PREFIX
from leafcuttr_sdk.authentication import (
    Authenticated,
    Authenticator,
    Credentials,
    NameAndPassword,
    Principal,
    Refused,
)
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.trouble import Complaints

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker

REMEMBERED_S: Final = 60.0
LOOK_S: Final = 1.0
"""Seconds after which the file is tested for a change again."""
_MOST: Final = 10_000
_AT_ONCE: Final = 2
"""Hashes that are made at the same time: they are what an attacker can make the broker do."""


def password_authenticator(broker: "Broker") -> Authenticator:
    """One for a service. Raises PluginError: as `PasswordAuthenticator`; without a file that is one that knows nobody
    where nobody has named it."""
    settings = broker.settings
    is_default = settings.list(f"{PREFIX}.authenticators") == AUTHENTICATORS
    if is_default and not settings.optional_text(PASSWORDS_FILE):
        return _Nobody()
    return PasswordAuthenticator(broker)


class _Nobody:
    async def authenticate(self, credentials: Credentials) -> None:
        return None


class PasswordAuthenticator:
    """One for a service. Raises PluginError: there is no such file, or it cannot be read."""

    def __init__(self, broker: "Broker") -> None:
        name = broker.settings.optional_text(PASSWORDS_FILE)
        if not name:
            raise PluginError(
                f"{PASSWORDS_FILE} is not set; `leafcuttr http passwd FILE NAME` writes such a file"
            )
        self._path = Path(name)
        self._clock = broker.clock
        self._logger = broker.logger
        self._complain = Complaints(broker.logger)
        self._seen = _stamp(self._path)
        self._take(read_passwords(self._path))
        self._looked = self._clock.monotonic()
        self._looking = False
        self._limiter = trio.CapacityLimiter(_AT_ONCE)
        self._secret = os.urandom(32)
        self._right: OrderedDict[bytes, float] = OrderedDict()

    async def authenticate(self, credentials: Credentials) -> Authenticated | Refused | None:
        if not isinstance(credentials, NameAndPassword):
            return None
        await self._look()
        name, password = credentials
        kept = self._hashes.get(name)
        if kept is None:
            await self._matches(self._nobody, password)
            return None
        key = self._key(name, password, kept)
        if not self._remembers(key):
            if not await self._matches(kept, password):
                return Refused(f"the password of {name!r} is wrong")
            self._remember(key)
        return Authenticated(Principal("User", name))

    def _take(self, hashes: dict[str, Hash]) -> None:
        self._hashes, self._nobody = hashes, nobody(hashes)

    async def _matches(self, kept: Hash, password: str) -> bool:
        return await trio.to_thread.run_sync(kept.matches, password, limiter=self._limiter)

    def _key(self, name: str, password: str, kept: Hash) -> bytes:
        """Neither the password nor what is kept of it, and of no use in another process."""
        given = f"{name}\0{password}\0{kept}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(given, key=self._secret, digest_size=32).digest()

    def _remembers(self, key: bytes) -> bool:
        since = self._right.get(key)
        return since is not None and self._clock.monotonic() - since < REMEMBERED_S

    def _remember(self, key: bytes) -> None:
        self._right[key] = self._clock.monotonic()
        self._right.move_to_end(key)
        if len(self._right) > _MOST:
            self._right.popitem(last=False)

    async def _look(self) -> None:
        """Read the file again if it has changed. One that cannot be read, or is wrong, changes nothing."""
        now = self._clock.monotonic()
        if self._looking or now - self._looked < LOOK_S:
            return
        self._looking, self._looked = True, now
        try:
            stamp = await trio.to_thread.run_sync(_stamp, self._path)
            if stamp != self._seen:
                self._take(await trio.to_thread.run_sync(read_passwords, self._path))
                self._seen = stamp
                self._logger.info("%s was read again: %d names", self._path, len(self._hashes))
        except (PluginError, OSError) as error:
            self._complain("file", "the passwords that were read before stay in use: %s", error)
        finally:
            self._looking = False


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
