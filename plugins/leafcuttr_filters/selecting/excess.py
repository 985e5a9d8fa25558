"""The verdict on a record that does not pass: `over=drop` or `over=dead-letter`."""

from leafcuttr_sdk.filters import DROP, DeadLetter, Verdict


def verdict_on_excess(over: str, reason: str) -> Verdict:
    return DROP if over == "drop" else DeadLetter(reason)
