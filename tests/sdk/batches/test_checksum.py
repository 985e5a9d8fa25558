"""The checksum without the package around it, and the package itself where that is laid out otherwise."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

import crc32c as package
import pytest

from leafcuttr_sdk.batches import checksum

CHECK = 0xE3069283
"""Of the nine digits, by the catalogue of CRCs."""


def loaded_anew() -> ModuleType:
    spec = importlib.util.find_spec(checksum.__name__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_it_is_that_of_the_package(kind: type[bytes]) -> None:
    assert checksum.crc32c(kind(b"123456789")) == CHECK
    assert checksum.crc32c(kind(b"56789"), checksum.crc32c(kind(b"1234"))) == CHECK
    data = bytes(range(256)) * 40
    assert checksum.crc32c(kind(data)) == package.crc32c(data)


def test_a_release_with_another_layout_is_imported_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    find = PathFinder.find_spec

    def without_the_extension(name: str, path: list[str] | None = None) -> ModuleSpec | None:
        return None if name == "crc32c._crc32c" else find(name, path)

    assert loaded_anew().crc32c is not package.crc32c
    monkeypatch.setattr(PathFinder, "find_spec", without_the_extension)
    assert loaded_anew().crc32c is package.crc32c
