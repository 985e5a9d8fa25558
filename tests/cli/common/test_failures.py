"""Error codes of the protocol in words."""

from __future__ import annotations

from leafcuttr.cli.common.failures import reason


def test_error_codes_in_words() -> None:
    assert reason(3) == "unknown topic or partition (UNKNOWN_TOPIC_OR_PARTITION)"
    assert reason(40, "retention.ms: no.") == "retention.ms: no (INVALID_CONFIG)"
    assert reason(9999) == "refused (error 9999)"
