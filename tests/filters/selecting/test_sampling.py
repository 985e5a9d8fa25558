"""`sample`: how many pass, and that those of a key go together."""

from __future__ import annotations

import pytest

from support.making_filters import made, of


@pytest.mark.parametrize("by", ["record", "key"])
@pytest.mark.parametrize(
    ("share", "least", "most"), [("0", 0, 0), ("0.25", 2300, 2700), ("1", 10_000, 10_000)]
)
def test_a_share_passes(by: str, share: str, least: int, most: int) -> None:
    sample = made(f"sample share={share} by={by}").filter
    records = [of(b"", b"key-%d" % number) for number in range(10_000)]
    assert least <= sum(sample(one) is one for one in records) <= most


def test_records_of_a_key_pass_together_and_in_every_instance() -> None:
    records = [of(b"%d" % number, b"key-%d" % (number % 50)) for number in range(500)]
    first, second = (made("sample share=0.5 by=key").filter for _ in range(2))
    passed = [one for one in records if first(one) is one]
    assert passed == [one for one in records if second(one) is one]
    kept = {one.key for one in passed}
    assert 0 < len(kept) < 50 and len(passed) == 10 * len(kept)
    assert made("sample share=0.5 by=key").filter(of(b"")) is not None
