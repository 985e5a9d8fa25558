"""From an API key and version to its handler and codec."""

import importlib

import pytest

from leafcuttr.server.routes import route
from leafcuttr.wire.api import APIS, Api


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_version_of_every_api(api: Api) -> None:
    handle = importlib.import_module(f"leafcuttr.handlers.{api.module}").handle
    for version in range(api.min_version, api.max_version + 1):
        found = route(api.key << 16 | version)
        assert found is not None
        assert (found.api, found.version, found.handle) == (api, version, handle)
        assert found is route(api.key << 16 | version), "it is kept"
        assert found.flexible_request == (api.request_header_version(version) >= 2)
        assert found.response_header == api.response_header_version(version)
    for version in (api.min_version - 1, api.max_version + 1):
        if version >= 0:
            assert route(api.key << 16 | version) is None


@pytest.mark.parametrize("key", [4, 77, 0x7FFF, 0xFFFF])
def test_keys_that_this_broker_does_not_serve(key: int) -> None:
    assert route(key << 16) is None
