"""Schemas of a registry for tasks. One that is away is waited for: no record may be in error because of it. A schema
that the registry does not have is an error of the records that name it."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar
from uuid import UUID

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.http_schemas import HttpRegistry
from leafcuttr_sdk.schemas import RegisteredSchema, SchemaProviderError
from leafcuttr_spark.options import OptionError

LOGGER: Final = logging.getLogger("leafcuttr.spark")
T = TypeVar("T")

_WAIT_MS: Final = "schema.registry.wait.ms"
_DEFAULTS: Final = {
    # Many records may name an id that is not there.
    "schema.registry.missing.id.cache.ttl.sec": "10",
}
_PAUSE_S: Final = 1.0


class RegistrySchemas:
    """A registry, by the settings of its clients. Raises OptionError for settings that cannot be used."""

    def __init__(
        self,
        settings: Mapping[str, str],
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        given = {**_DEFAULTS, **settings}
        wait = given.pop(_WAIT_MS, "600000")
        if not wait.isdecimal():
            raise OptionError(f"the option {_WAIT_MS} has the value {wait!r}; allowed is a number")
        self._wait_s = int(wait) / 1000
        self._sleep = sleep
        self._clock = clock
        try:
            self._client = HttpRegistry(given)
        except PluginError as error:
            raise OptionError(str(error)) from None

    @property
    def client(self) -> HttpRegistry:
        return self._client

    def schema(self, key: int | UUID, subject: str | None = None) -> RegisteredSchema:
        """Raises SchemaNotFoundError; SchemaProviderError where it was waited for in vain."""
        name = str(key) if isinstance(key, UUID) else key
        found = self._client.get(name, subject)
        return found if found is not None else self.waited(lambda: self._client.by_id(name, subject))

    def waited(self, fetch: Callable[[], T]) -> T:
        """What `fetch` returns, which is called until the registry answers. Raises SchemaProviderError."""
        until = self._clock() + self._wait_s
        while True:
            try:
                return fetch()
            except SchemaProviderError as error:
                if self._clock() + _PAUSE_S >= until:
                    raise
                LOGGER.warning("%s; waiting for it", error)
            self._sleep(_PAUSE_S)
