"""Schemas of any registry with Confluent's API, over HTTP: `HttpRegistry` blocks, for executors, programs and threads;
`HttpSchemaProvider` is the same as a `leafcuttr_sdk.SchemaProvider`, on trio.

    registry = HttpRegistry({"schema.registry.url": "https://registry:8081", "basic.auth.user.info": "ada:sesame"})
    schema = registry.by_id(7)

Only the standard library is imported, and nothing of the broker. Settings are those of Confluent's clients. An
`HttpRegistry` can be pickled: what it has in memory, and its connections, stay behind.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from leafcuttr_sdk.http_schemas.provider import HttpSchemaProvider
    from leafcuttr_sdk.http_schemas.registry import HttpRegistry
    from leafcuttr_sdk.http_schemas.settings import RegistrySettings, registry_settings

_PLACES: Final = {
    "provider": "HttpSchemaProvider",
    "registry": "HttpRegistry",
    "settings": "RegistrySettings registry_settings",
}
_MODULES: Final = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = ["HttpRegistry", "HttpSchemaProvider", "RegistrySettings", "registry_settings"]


def __getattr__(name: str) -> Any:
    import importlib

    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
