"""The table of APIs, and the page that shows it."""

import subprocess
import sys
from pathlib import Path

import pytest

from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.reference import api_keys_page

_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api-keys.md"


def test_the_reference_page_agrees_with_the_code() -> None:
    assert _PAGE.read_text() == api_keys_page(), (
        "run: python -m leafcuttr.wire.reference > docs/reference/api-keys.md"
    )


def test_every_key_has_an_api_with_its_name() -> None:
    assert list(APIS) == list(ApiKey) == sorted(ApiKey)
    for api in APIS.values():
        assert api.key.name.lower() == api.module
        assert api.module.replace("_", "") == api.name.lower()
        assert api.request.__name__ == f"{api.name}Request"
        assert api.response.__name__ == f"{api.name}Response"


def test_produce_alone_is_advertised_below_what_is_served() -> None:
    produce = APIS[ApiKey.PRODUCE]
    assert (produce.advertised_min_version, produce.min_version, produce.max_version) == (0, 3, 13)
    assert not produce.serves(2)
    assert produce.serves(3)
    assert not produce.serves(14)
    others = [api for api in APIS.values() if api.key != ApiKey.PRODUCE]
    assert all(api.advertised_min_version == api.min_version for api in others)


@pytest.mark.parametrize(
    ("key", "version", "request_header", "response_header"),
    [
        (ApiKey.PRODUCE, 8, 1, 0),
        (ApiKey.PRODUCE, 9, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 3, 2, 0),
        (ApiKey.OFFSET_DELETE, 0, 1, 0),
        (ApiKey.DESCRIBE_CLUSTER, 0, 2, 1),
    ],
)
def test_header_versions(key: ApiKey, version: int, request_header: int, response_header: int) -> None:
    assert APIS[key].request_header_version(version) == request_header
    assert APIS[key].response_header_version(version) == response_header


def test_messages_are_imported_only_when_asked_for() -> None:
    script = (
        "import sys, leafcuttr.wire.frame, leafcuttr.wire.api as api\n"
        "loaded = lambda: [name for name in sys.modules if 'wire.messages.' in name]\n"
        "assert not loaded(), loaded()\n"
        "api.APIS[3].request\n"
        "assert loaded() == ['leafcuttr.wire.messages.metadata'], loaded()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
