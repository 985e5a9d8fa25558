"""What kind of store a file is, by its first bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr.client.store_kinds import kind_of_store


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\xfe\xed\xfe\xed\0\0\0\2", "JKS"),
        (b"\xce\xce\xce\xce\0\0\0\2", "JCEKS"),
        (b"\x30\x82\x0a\x0b", "PKCS12"),
        (b"\x30\x80", "PKCS12"),
        (b"-----BEGIN CERTIFICATE-----", "PEM"),
        (b"\xfe\xed\xfe", "PEM"),
        (b"", "PEM"),
    ],
)
def test_each_kind(tmp_path: Path, data: bytes, kind: str) -> None:
    (file := tmp_path / "store").write_bytes(data)
    assert kind_of_store(str(file)) == kind


def test_one_that_cannot_be_read(tmp_path: Path) -> None:
    assert kind_of_store(str(tmp_path / "none")) is None
    assert kind_of_store(str(tmp_path)) is None
