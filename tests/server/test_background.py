"""What goes on by itself goes on through failures, and says them once."""

import errno
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.testing
import trustme
from trio.testing import MockClock

from leafcuttr.net.live_certificates import LiveCertificates
from leafcuttr.net.tls_files import TlsFiles
from leafcuttr.server import background
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.audit import PERIOD_S
from support.waiting import eventually

Serve = Callable[..., Awaitable[Broker]]


async def test_a_step_that_the_disk_refuses_is_named_once(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    outcomes: list[Exception | None] = [full, full, full, None, full, ValueError("a bug"), None, None]
    taken = 0
    over = trio.Event()

    async def step() -> None:
        nonlocal taken
        taken += 1
        if taken == len(outcomes):
            over.set()
        outcome = outcomes[taken - 1]
        if outcome is not None:
            raise outcome

    with caplog.at_level(logging.INFO):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(background._every, "the step", lambda: 1.0, step)
            await over.wait()
            nursery.cancel_scope.cancel()
    said = [(record.levelname, record.getMessage(), record.exc_info is not None) for record in caplog.records]
    refused = ("ERROR", "the step failed, it is tried again: No space left on device", False)
    assert said == [
        refused,
        ("INFO", "the step works again", False),
        refused,
        ("ERROR", "the step failed; it is tried again", True),
        ("INFO", "the step works again", False),
    ]


@pytest.mark.setting("lc.tls.reload.interval.ms")
@pytest.mark.parametrize("every_ms", [20, 0])
async def test_certificates_are_looked_at(serve: Serve, tmp_path: Path, every_ms: int) -> None:
    """Of every listener, as often as is set, and not at all with 0."""
    ca, file = trustme.CA(), tmp_path / "key.pem"
    ca.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(file)
    broker = await serve({"lc.tls.reload.interval.ms": str(every_ms)})
    certificates = LiveCertificates(TlsFiles("lc.x", str(file)))
    broker.certificates["lc.x"] = certificates
    ca.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(file)
    if every_ms:
        await eventually(lambda: certificates.context.sni_callback is not None, "the new certificate")
        assert not certificates.look()
    else:
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert certificates.look()


async def test_what_the_audit_log_has_counted_is_written_each_minute_and_at_the_end(
    serve: Serve, caplog: pytest.LogCaptureFixture, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    broker = await serve({"authorizer.class.name": standard})
    assert broker.audit is not None and broker.authorizer is not None
    swept: list[bool] = []
    broker.audit.sweep = lambda *, everything=False: swept.append(everything)  # type: ignore[method-assign]
    scope = trio.CancelScope()

    async def sweep() -> None:
        with scope:
            assert broker.audit is not None
            await background._sweep_audit(broker.audit)

    nursery.start_soon(sweep)
    await trio.sleep(PERIOD_S * 2.5)
    assert swept.count(False) >= 2 and True not in swept
    scope.cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert True in swept
