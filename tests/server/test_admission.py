"""What handshakes and log-ins share: their time, their end, their lines."""

from __future__ import annotations

import logging

import pytest
import trio
import trio.testing

from leafcuttr.server.admission import Admission, is_late

LOGGER = logging.getLogger("tests.admission")


async def test_a_block_ends_when_its_time_is_over(autojump_clock: trio.testing.MockClock) -> None:
    admission = Admission(LOGGER, 10.0)
    began = trio.current_time()
    with admission.in_time() as scope:
        await trio.sleep_forever()
    assert trio.current_time() - began == 10
    assert is_late(scope)


async def test_one_that_comes_to_its_end_is_not_late(autojump_clock: trio.testing.MockClock) -> None:
    admission = Admission(LOGGER, 10.0)
    with admission.in_time() as scope:
        await trio.sleep(9)
    await trio.sleep(9)
    assert not is_late(scope)
    admission.stop()  # which is nothing to it any more
    assert not scope.cancel_called


async def test_a_stop_ends_all_that_are_under_way(autojump_clock: trio.testing.MockClock) -> None:
    """They are not late."""
    admission, ended = Admission(LOGGER, 10.0), list[bool]()

    async def one() -> None:
        with admission.in_time() as scope:
            await trio.sleep_forever()
        ended.append(is_late(scope))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(one)
        await trio.sleep(1)
        admission.stop()
    assert ended == [False] * 3


def test_what_is_refused_is_counted_and_one_line_for_each_reason(caplog: pytest.LogCaptureFixture) -> None:
    admission = Admission(LOGGER, 10.0)
    for _ in range(3):
        admission.refuse("SSL", "10.0.0.1:5", "bad certificate")
    admission.refuse("SSL", "10.0.0.1:6", "no TLS")
    admission.refuse("OTHER", "10.0.0.1:7", "no TLS")
    for host in ("10.0.0.1", "10.0.0.2"):
        admission.refuse("SASL", f"{host}:8", "wrong password", of=host)
    assert admission.failed == {"SSL": 4, "OTHER": 1, "SASL": 2}
    assert [record.getMessage() for record in caplog.records] == [
        "closing the connection from 10.0.0.1:5 on SSL: bad certificate",
        "closing the connection from 10.0.0.1:6 on SSL: no TLS",
        "closing the connection from 10.0.0.1:7 on OTHER: no TLS",
        "closing the connection from 10.0.0.1:8 on SASL: wrong password",
        "closing the connection from 10.0.0.2:8 on SASL: wrong password",
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
