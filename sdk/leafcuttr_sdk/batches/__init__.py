"""Record batches as bytes: made from encoded parts for `Broker.append`, and read and rewritten as `Broker.read_batches`
gives them. And Java's partitioner.

For plugins that move more records than `Broker.produce_batch` and `Broker.fetch` can, which make an object of each.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from leafcuttr_sdk.batches.builder import (
        NO_HEADERS,
        NO_KEY,
        BatchBuilder,
        EncodedHeaders,
        EncodedKey,
        encode_headers,
        encode_key,
    )
    from leafcuttr_sdk.batches.errors import BatchError
    from leafcuttr_sdk.batches.header import BatchHeader
    from leafcuttr_sdk.batches.partitioner import Sticky, murmur2, partition_of
    from leafcuttr_sdk.batches.reader import Batch, BatchRecord, batches_in

_PLACES: Final = {
    "builder": "NO_HEADERS NO_KEY BatchBuilder EncodedHeaders EncodedKey encode_headers encode_key",
    "header": "BatchHeader",
    "partitioner": "Sticky murmur2 partition_of",
    "errors": "BatchError",
    "reader": "Batch BatchRecord batches_in",
}
_MODULES: Final = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = [
    "NO_HEADERS",
    "NO_KEY",
    "Batch",
    "BatchBuilder",
    "BatchError",
    "BatchHeader",
    "BatchRecord",
    "EncodedHeaders",
    "EncodedKey",
    "Sticky",
    "batches_in",
    "encode_headers",
    "encode_key",
    "murmur2",
    "partition_of",
]


def __getattr__(name: str) -> Any:
    import importlib

    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
