"""The key sources that a broker uses. `key_source`, and `cryptography` with it, is imported when there is one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from leafcuttr_sdk import Clock

if TYPE_CHECKING:
    from leafcuttr.state.security.bearer.key_source import KeySettings, KeySource


class KeySources:
    """Listeners with the same settings share one."""

    def __init__(self) -> None:
        self._sources: dict[KeySettings, KeySource] = {}

    def __iter__(self) -> "Iterator[KeySource]":
        return iter(list(self._sources.values()))

    def of(self, settings: "KeySettings") -> "KeySource":
        """Raises ValueError, with one clause, for a URL that is none."""
        from leafcuttr.state.security.bearer.key_source import KeySource

        found = self._sources.get(settings)
        if found is None:
            found = self._sources[settings] = KeySource(settings)
        return found

    def take(self, source: "KeySource", clock: Clock) -> None:
        """One that has just been read, in the place of one with the same settings."""
        self._sources[source.settings] = source
        source.was_read(clock)
