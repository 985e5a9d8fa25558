"""Keys or values by a schema that some of them would keep busy without a bound: regular expressions and alternatives of
JSON Schema. A worker process decodes them, those of a batch together, for which the thread that has the batch waits.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from leafcuttr_sdk.filters import NeedsThread, NotReady
from leafcuttr_sdk.schemas import ParsedSchema, SchemaProviderError

if TYPE_CHECKING:
    from leafcuttr_registry.provider import RegistryProvider


class ByWorker:
    """What checks data of one schema. `begin` is where they begin in a key or value."""

    def __init__(
        self, provider: "RegistryProvider", schema: ParsedSchema, key: int | str, begin: int
    ) -> None:
        self._provider = provider
        self._schema = schema
        self._key = key
        self._begin = begin

    def __call__(self, data: bytes) -> None:
        raise NeedsThread(
            f"schema {self._key} may keep a check busy without a bound: it needs a worker process, for which only the "
            "validators and filters of a topic can wait"
        )

    def refusals(self, data: Sequence[bytes]) -> list[str | NotReady | None]:
        """Of all of them, in words that follow "the value"; in a thread of trio."""
        values = [each[self._begin :] for each in data]
        try:
            return [*trio.from_thread.run(self._provider.check_values, self._schema, values)]
        except SchemaProviderError as error:
            return [NotReady(str(error))] * len(data)
