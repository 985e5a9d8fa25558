"""The committed page of keys is what the tables of the code say."""

from pathlib import Path

from leafcuttr_forward.mm2.client_keys import CLIENT_KEYS
from leafcuttr_forward.mm2.keys import KEYS as MIRROR_KEYS
from leafcuttr_forward.mm2.worker_keys import WORKER_KEYS
from leafcuttr_forward.reference_page import page
from leafcuttr_forward.relay.keys import KEYS as RELAY_KEYS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "forwarding.md"


def test_the_committed_page_is_the_code_s() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "see the docstring of leafcuttr_forward.reference_page"


def test_every_key_is_on_it_and_has_a_sentence() -> None:
    text = page()
    for key in (*MIRROR_KEYS, *WORKER_KEYS, *CLIENT_KEYS):
        assert f"| `{key.name}` |" in text
        assert key.what
    for relay_key in RELAY_KEYS:
        assert f"| `{relay_key.name}` |" in text
        assert relay_key.here.endswith(".")
