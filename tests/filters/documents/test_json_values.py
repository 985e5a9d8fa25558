"""JSON as filters see it, and that a chain decodes each value once."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_filters.documents import json_values
from leafcuttr_filters.documents.json_values import MOST_BYTES, CannotFilterError, decoded, encoded

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_is_read(value: Any) -> None:
    data = encoded(value)
    assert json.loads(data) == value
    assert decoded(bytes(bytearray(data))) == value


def test_halves_of_surrogate_pairs_stay_escapes() -> None:
    document = decoded(b'{"a":"\\ud800","b":"\xc3\xa9"}')
    assert encoded(document) == b'{"a":"\\ud800","b":"\\u00e9"}'
    assert encoded(decoded('{"b":"é"}'.encode())) == '{"b":"é"}'.encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nope",
        b"{",
        b'{"a":NaN}',
        b"-Infinity",
        b'"\xff"',
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"1" * 5000,
    ],
    ids=lambda data: repr(data[:10]),
)
def test_what_is_no_json_is_refused_each_time(data: bytes) -> None:
    for _ in range(2):
        with pytest.raises(CannotFilterError, match="it is no JSON"):
            decoded(data)


def test_what_json_cannot_write_is_refused() -> None:
    for value in (float("inf"), float("nan"), decoded(b"1e999"), {"a": object()}):
        with pytest.raises(CannotFilterError, match="what becomes of it is no JSON"):
            encoded(value)


def test_the_last_of_two_members_counts() -> None:
    assert decoded(b'{"a":1,"a":2}') == {"a": 2}


def test_the_same_bytes_are_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def decode(text: str) -> Any:
        calls.append(text)
        return json.loads(text)

    monkeypatch.setattr(json_values, "_decode", decode)
    data = b'{"once": 1}'
    assert decoded(data) is decoded(data)
    written = encoded({"twice": 2})
    assert decoded(written) == {"twice": 2}
    assert calls == ['{"once": 1}']
    assert decoded(bytes(bytearray(data))) == {"once": 1}
    assert len(calls) == 2, "equal bytes of another record"


def test_a_thread_keeps_what_it_has_decoded_to_itself() -> None:
    data, found = b'{"of": "this thread"}', []
    here = decoded(data)
    thread = threading.Thread(target=lambda: found.append(decoded(data)))
    thread.start()
    thread.join()
    assert found == [here] and found[0] is not here


def test_what_is_kept_has_a_bound() -> None:
    kept = json_values._kept
    for number in range(3000):
        decoded(json.dumps({"n": number, "pad": "x" * 1000}).encode())
        assert sum(len(data) for data, _ in kept.documents.values()) == kept.bytes <= MOST_BYTES
    large = json.dumps("x" * 100_000).encode()
    decoded(large)
    assert id(large) not in kept.documents
    for number in range(10_000):
        decoded(b"%d" % number)
    assert len(kept.documents) <= 4096


def test_where_nobody_comes_for_them_few_are_kept_until_somebody_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = json_values._Kept()
    monkeypatch.setattr(json_values, "_kept", kept)

    def fill(*, wanted: bool) -> int:
        """How many of so many are there at the end."""
        values = [b'"%s%d"' % (b"x" * 1000, number) for number in range(1000)]
        for data in values:
            decoded(data)
            if wanted:
                decoded(data)
        return sum(id(data) in kept.documents for data in values)

    texts: list[str] = []
    decode = json_values._decode
    monkeypatch.setattr(json_values, "_decode", lambda text: (texts.append(text), decode(text))[1])
    assert fill(wanted=True) > 400 and kept.skip == 0
    assert len(texts) == 1000, "each once, also behind those that were given up"
    fill(wanted=False)
    assert fill(wanted=False) < 1000 // json_values.SKIP + 2
    fill(wanted=True)
    assert kept.skip == 0
