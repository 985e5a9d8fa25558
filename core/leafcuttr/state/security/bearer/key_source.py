"""Where the keys of an issuer come from: a file or its endpoint, read again from time to time (Kafka's
RefreshingHttpsJwks).

No call waits on the loop: `read` blocks and is for worker threads, and for the start, which needs the keys. What has
been read stays in use as long as nothing newer can be had. Requests that fail are repeated after a pause that doubles.
A token with a key that is not there has the keys read at once, but not more often than once a minute for all tokens.
"""

import logging
import threading
from math import inf
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

import trio

from leafcuttr.net.document import NoDocument, check_url, fetch_document
from leafcuttr.state.security.bearer.keys import KeysError, SigningKeys, read_keys
from leafcuttr_sdk import Clock

logger = logging.getLogger(__name__)

_MOST_BYTES: Final = 1 << 20
_UNKNOWN_EVERY_S: Final = 60.0
"""As Kafka's, which counts them by key id: there are more ids than keys."""
_WAIT_S: Final = 5.0
"""How long a token waits for keys that are read because of it."""


class KeySettings(NamedTuple):
    """`url` is that of a file (file:) or of an endpoint. Times are in seconds."""

    url: str
    refresh_s: float = 3600.0
    backoff_s: float = 0.1
    most_backoff_s: float = 10.0
    request_s: float = 10.0
    ca_file: str | None = None
    """A PEM file with the authorities that sign the endpoint's certificate; None: those that the machine trusts."""


class KeySource:
    """The keys from one place."""

    def __init__(self, settings: KeySettings) -> None:
        """Raises ValueError, with one clause, for a URL that is none."""
        self.settings = settings
        self.keys = SigningKeys(())
        self._path = _file_of(settings.url)
        self._reading = threading.Lock()
        self._failures = 0
        self._next = -inf
        self._unknown_at = -inf
        self._under_way: trio.Event | None = None

    def read(self) -> None:
        """Read them now. Raises KeysError, one clause, and leaves those that were read before. Blocks."""
        self.keys = read_keys(self._text())

    def was_read(self, clock: Clock) -> None:
        """`read` has succeeded just now: the time to the next counts from here."""
        self._failures, self._next = 0, clock.monotonic() + self.settings.refresh_s

    async def follow(self, clock: Clock) -> None:
        """Read them again if it is time to."""
        if self._under_way is None and clock.monotonic() >= self._next:
            await self._read_in_worker(clock)

    async def find_unknown(self, clock: Clock) -> None:
        """A token names a key that is not there: read them, or wait for those who do, unless a minute has not gone by
        since the last time."""
        with trio.move_on_after(_WAIT_S):
            if self._under_way is not None:
                await self._under_way.wait()
            elif clock.monotonic() - self._unknown_at >= _UNKNOWN_EVERY_S:
                self._unknown_at = clock.monotonic()
                await self._read_in_worker(clock)

    async def _read_in_worker(self, clock: Clock) -> None:
        settings = self.settings
        self._under_way = trio.Event()
        try:
            why = await trio.to_thread.run_sync(self._try_to_read, abandon_on_cancel=True)
        finally:
            self._under_way.set()
            self._under_way = None
        if why is None:
            if self._failures:
                logger.info("the keys at %s can be read again", settings.url)
            self.was_read(clock)
            return
        if not self._failures:
            logger.error(
                "the keys at %s cannot be read: %s; %d from before stay in use",
                settings.url,
                why,
                len(self.keys),
            )
        pause = min(settings.backoff_s * 2 ** min(self._failures, 32), settings.most_backoff_s)
        self._next = clock.monotonic() + pause
        self._failures += 1

    def _try_to_read(self) -> str | None:
        """Why it does not succeed. In a worker thread; one that is abandoned may still be at it."""
        with self._reading:
            try:
                self.read()
            except KeysError as error:
                return str(error)
        return None

    def _text(self) -> bytes:
        try:
            if self._path is None:
                return fetch_document(
                    self.settings.url,
                    ca_file=self.settings.ca_file,
                    accept="application/jwk-set+json, application/json",
                    at_most_s=self.settings.request_s,
                    at_most_bytes=_MOST_BYTES,
                )
            with self._path.open("rb") as file:
                found = file.read(_MOST_BYTES + 1)
        except NoDocument as error:
            raise KeysError(str(error)) from None
        except OSError as error:
            raise KeysError(error.strerror or str(error)) from None
        if len(found) > _MOST_BYTES:
            raise KeysError(f"it has more than {_MOST_BYTES} bytes")
        return found


def _file_of(url: str) -> Path | None:
    """The file that a URL names; None for an endpoint. Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme != "file":
        check_url(url)
        return None
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise ValueError("file: is followed by the whole path of a file on this machine")
    return Path(unquote(parts.path))
