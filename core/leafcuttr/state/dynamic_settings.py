"""Changes of broker settings made while running: kept in `state.metadata`, in force in `config.settings`.

Two scopes: this broker, and all brokers ("" on the wire), which a change for this broker overrides. A change is
committed by a worker and published after that; one lock keeps two changes from overlapping. Which settings may be
changed at all is the handlers' business, as are requests and answers; but for `min.insync.replicas`, of which there
is always one value for all brokers, as in a Kafka with eligible leader replicas (KIP-966).
"""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final

import trio

from leafcuttr.config.listeners import SETTINGS as LISTENERS
from leafcuttr.config.listeners import parse_listeners
from leafcuttr.config.setting import render
from leafcuttr.config.settings import Settings
from leafcuttr.errors import ConfigError, InvalidConfig, InvalidRequest, StorageError
from leafcuttr.state.metadata import MetadataStore

logger = logging.getLogger(__name__)

ALL_BROKERS: Final = ""
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"


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
        self._settle_min_insync_replicas(stored)
        for scope, texts in self._texts.items():
            texts.update(stored.get(scope, {}))
            valid = {name: text for name, text in texts.items() if self._is_valid(name, text)}
            self._settings.replace_dynamic(valid, cluster=scope == ALL_BROKERS)

    def _settle_min_insync_replicas(self, stored: dict[str, dict[str, str]]) -> None:
        """Make what the broker was started with the value for all brokers where there is none, because the directory is
        new or an earlier version's, and remove one for this broker alone: Kafka does both when it turns the feature on.
        """
        changes: list[tuple[str, str | None]] = []
        own = stored.get(self.own_scope, {}).pop(MIN_INSYNC_REPLICAS, None)
        if own is not None:
            logger.info("%s=%s for this broker alone is removed", MIN_INSYNC_REPLICAS, own)
            changes.append((self.own_scope, None))
        of_all = stored.setdefault(ALL_BROKERS, {})
        if MIN_INSYNC_REPLICAS not in of_all:
            value = render(self._settings.value(MIN_INSYNC_REPLICAS))
            assert value is not None
            of_all[MIN_INSYNC_REPLICAS] = value
            changes.append((ALL_BROKERS, value))
        try:
            for scope, text in changes:
                self._metadata.set_broker_configs(scope, {MIN_INSYNC_REPLICAS: text})
        except StorageError as error:
            # A full disk must not keep an older directory from being read. The next start tries again.
            logger.warning("%s for all brokers is not stored: %s", MIN_INSYNC_REPLICAS, error)

    def texts(self, scope: str) -> Mapping[str, str]:
        """What was changed in a scope: ALL_BROKERS or `own_scope`. For reading only."""
        return self._texts[scope]

    async def edit(
        self,
        scope: str,
        edit: Callable[[Mapping[str, str]], Mapping[str, str]],
        removed: Collection[str] = (),
    ) -> None:
        """Replace the changes of a scope by what `edit` makes of them. `removed` is as in `check`.

        Raises InvalidRequest (a value that is not allowed), InvalidConfig, StorageError, and what `edit` raises: then
        nothing is changed.
        """
        async with self._lock:
            before = self._texts[scope]
            after = dict(edit(before))
            self.check(scope, after, removed)
            changes: dict[str, str | None] = {name: None for name in before if name not in after}
            changes |= {name: text for name, text in after.items() if before.get(name) != text}
            if not changes:
                return
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._metadata.set_broker_configs, scope, changes)
                self._texts[scope] = after
                valid = {name: text for name, text in after.items() if self._is_valid(name, text)}
                self._settings.replace_dynamic(valid, cluster=scope == ALL_BROKERS)

    def check(self, scope: str, texts: Mapping[str, str], removed: Collection[str] = ()) -> None:
        """Raise InvalidRequest or InvalidConfig, with Kafka's words, if the changes of a scope cannot be these.

        `removed` are the names that the request takes the value from, whether they have one or not.
        """
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
        # Last, because in Kafka it is not the broker that refuses these two but its controller.
        if scope == ALL_BROKERS and MIN_INSYNC_REPLICAS not in texts:
            raise InvalidConfig(
                f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled."
            )
        if scope == self.own_scope and (MIN_INSYNC_REPLICAS in texts or MIN_INSYNC_REPLICAS in removed):
            raise InvalidConfig(f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled.")

    def _is_valid(self, name: str, text: str) -> bool:
        try:
            self._settings.parse_dynamic({name: text})
        except InvalidRequest:
            return False
        return True
