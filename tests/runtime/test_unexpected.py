"""Unexpected errors as errors for a client: one with its traceback in the log, or one line a minute."""

import errno
import logging
import os

import pytest

from leafcuttr.errors import StorageError, UnknownServerError
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.unexpected import as_refusal


@pytest.fixture
def complain() -> Complaints:
    return Complaints(logging.getLogger("leafcuttr.test_unexpected"))


def test_an_error_that_nobody_expected(complain: Complaints, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        refusal = as_refusal(complain, ValueError("a bug"), "appending to t-0")
        assert isinstance(refusal, UnknownServerError)
        assert "a bug" not in str(refusal)
    assert [(each.getMessage(), each.exc_info is not None) for each in caplog.records] == [
        ("appending to t-0 failed", True)
    ] * 2


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
        RuntimeError("can't start new thread"),
    ],
    ids=["descriptors", "threads"],
)
def test_a_process_that_has_run_out_of_something(
    complain: Complaints, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    for _ in range(3):
        assert isinstance(as_refusal(complain, error, "appending to t-0"), StorageError)
    (record,) = caplog.records
    assert record.getMessage().startswith("appending to t-0 failed: ")
    assert record.exc_info is None
