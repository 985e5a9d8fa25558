"""Changes of broker settings made while running: kept in `state.metadata`, in force in `config.settings`.

Two scopes: this broker, and all brokers ("" on the wire), which a change for this broker overrides. A change is
committed by a worker and published after that; one lock keeps two changes from overlapping. Which settings may be
changed at all is the handlers' business, as are requests and answers.
"""

from collections.abc import Callable, Mapping
from typing import Final

import trio

from leafcuttr.config.listeners import SETTINGS as LISTENERS
from leafcuttr.config.listeners import parse_listeners
from leafcuttr.config.settings import Settings
from leafcuttr.errors import ConfigError, InvalidRequest
from leafcuttr.state.metadata import MetadataStore

ALL_BROKERS: Final = ""


class DynamicSettings:
    """The changed settings of both scopes, as texts."""

    def __init__(self, settings: Settings, metadata: MetadataStore, node_id: int) -> None:
        self.own_scope = str(node_id)
        self._settings = settings
        self._metadata = metadata
        self._lock = trio.Lock()
        self._texts: dict[str, dict[str, str]] = {ALL_BROKERS: {}, self.own_scope: {}}

    def load(self) -> None:
        """Put in force what the metadata has, once, at start. A value that is no longer valid is left out."""
        stored = self._metadata.broker_configs()
        for scope, texts in self._texts.items():
            texts.update(stored.get(scope, {}))
            valid = {name: text for name, text in texts.items() if self._is_valid(name, text)}
            self._settings.replace_dynamic(valid, cluster=scope == ALL_BROKERS)

    def texts(self, scope: str) -> Mapping[str, str]:
        """What was changed in a scope: ALL_BROKERS or `own_scope`. For reading only."""
        return self._texts[scope]

    async def edit(self, scope: str, edit: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
        """Replace the changes of a scope by what `edit` makes of them.

        Raises InvalidRequest (a value that is not allowed), StorageError, and what `edit` raises: then nothing
        is changed.
        """
        async with self._lock:
            before = self._texts[scope]
            after = dict(edit(before))
            self.check(scope, after)
            changes: dict[str, str | None] = {name: None for name in before if name not in after}
            changes |= {name: text for name, text in after.items() if before.get(name) != text}
            if not changes:
                return
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._metadata.set_broker_configs, scope, changes)
                self._texts[scope] = after
                valid = {name: text for name, text in after.items() if self._is_valid(name, text)}
                self._settings.replace_dynamic(valid, cluster=scope == ALL_BROKERS)

    def check(self, scope: str, texts: Mapping[str, str]) -> None:
        """Raise InvalidRequest, with Kafka's words, if the changes of a scope cannot be these."""
        values = self._settings.parse_dynamic(texts)
        if values.get("log.retention.ms") == 0:
            raise InvalidRequest(
                "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
            )
        low, high = (
            values.get(name, self._settings.value(name))
            for name in ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms")
        )
        if isinstance(low, int) and isinstance(high, int) and low > high:
            raise InvalidRequest(
                f"log.cleaner.min.compaction.lag.ms ({low}) is above log.cleaner.max.compaction.lag.ms ({high})"
            )
        if scope == self.own_scope and (LISTENERS & (texts.keys() | self._texts[scope].keys())):
            try:
                parse_listeners(self._settings.with_changes(texts))
            except ConfigError as error:
                raise InvalidRequest(str(error)) from None

    def _is_valid(self, name: str, text: str) -> bool:
        try:
            self._settings.parse_dynamic({name: text})
        except InvalidRequest:
            return False
        return True
