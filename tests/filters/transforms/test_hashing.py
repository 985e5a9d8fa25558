"""`hash`: by the standard library's own digests."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import pytest

from leafcuttr_sdk import PluginError
from support.making_filters import made, of, value_of


def test_fields_become_their_hash() -> None:
    hashed = value_of(
        "hash fields=a,n.b,l.c,missing,null", {"a": "é", "n": {"b": 5}, "l": [{"c": True}], "null": None}
    )
    sha = lambda text: hashlib.sha256(text.encode()).hexdigest()  # noqa: E731
    assert hashed == {"a": sha("é"), "n": {"b": sha("5")}, "l": [{"c": sha("true")}], "null": None}
    assert value_of("hash fields=a algorithm=sha512", {"a": "x"}) == {"a": hashlib.sha512(b"x").hexdigest()}


def test_a_salt_makes_it_an_hmac(tmp_path: Path) -> None:
    (tmp_path / "salt").write_bytes(b"pepper\n")
    expected = {"a": hmac.new(b"pepper", b"x", "sha256").hexdigest()}
    assert value_of("hash fields=a salt=pepper", {"a": "x"}) == expected
    assert value_of(f"hash fields=a salt.file={tmp_path / 'salt'}", {"a": "x"}) == expected


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(PluginError, match=r"salt\.file=/no/where: No such file or directory"):
        made("hash fields=a salt.file=/no/where")


def test_half_of_a_surrogate_pair_has_a_hash_too() -> None:
    assert made("hash fields=a").filter(of(b'{"a":"\\ud800"}')) is not None
    assert value_of("hash fields=a", b'{"a":"\\ud800"}') != value_of("hash fields=a", b'{"a":"\\ud801"}')
