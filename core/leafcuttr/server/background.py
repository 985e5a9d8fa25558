"""What goes on by itself: checkpoints, retention, deletion, expiry. One task each, all in the services' nursery.

The loops only say when; the work and its limits belong to the parts they call. A round that fails is logged and
the next one comes all the same.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.errors import StorageError
from leafcuttr.runtime import standstill
from leafcuttr.runtime.pacing import Pace
from leafcuttr.server import loop_delay
from leafcuttr.server.listener import Connections
from leafcuttr.state.broker import Broker
from leafcuttr_sdk.trouble import exhausted

if TYPE_CHECKING:
    from leafcuttr.state.security.audit import AuditLog

logger = logging.getLogger(__name__)

_SOFT_CHECKPOINT_S: Final = 1.0
_FREE_SPACE_S: Final = 1.0
# Kafka starts retention half a minute after the start, so that a start is not slowed by it.
_RETENTION_DELAY_S: Final = 30.0
_PRODUCER_EXPIRY_S: Final = 600.0
# How often it is looked whether it is time to read keys again.
_KEYS_S: Final = 1.0
# How often a connection is checked while it may be idle, and at most how long between two checks.
_IDLE_CHECKS: Final = 4
_SWEEP_S: Final = 2.0


def start(broker: Broker, connections: Connections, nursery: trio.Nursery) -> None:
    """Start every loop of the broker."""
    settings, logs = broker.settings, broker.logs
    nursery.start_soon(_every, "soft checkpoint", lambda: _SOFT_CHECKPOINT_S, logs.soft_checkpoint)
    nursery.start_soon(
        _every,
        "checkpoint",
        lambda: settings.int("log.flush.offset.checkpoint.interval.ms") / 1000,
        logs.checkpoint,
    )
    nursery.start_soon(
        _every,
        "retention",
        lambda: settings.int("log.retention.check.interval.ms") / 1000,
        logs.apply_retention,
        _RETENTION_DELAY_S,
    )
    nursery.start_soon(_every, "the check of the free space", lambda: _FREE_SPACE_S, logs.watch_free_space)
    nursery.start_soon(_every, "deletion", lambda: _SOFT_CHECKPOINT_S, logs.remove_deleted)
    nursery.start_soon(logs.cleaner.run)
    nursery.start_soon(_every, "producer expiry", lambda: _PRODUCER_EXPIRY_S, logs.expire_producers)
    nursery.start_soon(_sweep_idle, broker, connections)
    nursery.start_soon(loop_delay.sample, broker.counts.loop_delay)
    nursery.start_soon(_every, "reading keys of tokens", lambda: _KEYS_S, partial(_follow_keys, broker))
    if broker.delegation_tokens is not None:
        nursery.start_soon(
            _every,
            "expiry of delegation tokens",
            lambda: settings.int("delegation.token.expiry.check.interval.ms") / 1000,
            broker.delegation_tokens.remove_expired,
        )
    nursery.start_soon(connections.end_sessions)
    if broker.audit is not None:
        nursery.start_soon(_sweep_audit, broker.audit)
    if every_ms := settings.int("lc.tls.reload.interval.ms"):
        look = partial(_read_certificates, broker, connections)
        nursery.start_soon(_every, "reading certificates", lambda: every_ms / 1000, look)


async def _sweep_audit(audit: "AuditLog") -> None:
    """Write what has been counted, and all of it at the end."""
    from leafcuttr.state.security.audit import PERIOD_S

    try:
        while True:
            await trio.sleep(PERIOD_S)
            audit.sweep()
    finally:
        audit.sweep(everything=True)


async def _every(
    what: str,
    period_s: Callable[[], float],
    step: Callable[[], Awaitable[object]],
    first_s: float | None = None,
) -> None:
    """Take the step again and again. The disk's refusal is one line, however often it is the same, and one when it
    is over; what is unexpected comes with its traceback."""
    await trio.sleep(period_s() if first_s is None else min(first_s, period_s()))
    refused = None
    while True:
        try:
            await step()
        except Exception as error:
            reason = _known_reason(error)
            if reason is None:
                logger.exception("%s failed; it is tried again", what)
            elif reason != refused:
                logger.error("%s failed, it is tried again: %s", what, reason)
            refused = reason or refused
        else:
            if refused is not None:
                logger.info("%s works again", what)
            refused = None
        await trio.sleep(period_s())


async def _read_certificates(broker: Broker, connections: Connections) -> None:
    """Those whose files have changed."""
    for certificates in (*connections.certificates.values(), *broker.certificates.values()):
        await trio.to_thread.run_sync(certificates.look)


async def _follow_keys(broker: Broker) -> None:
    for source in broker.token_keys:
        await source.follow(broker.clock)


def _known_reason(error: Exception) -> str | None:
    """Why the disk, or the process, refuses; None for what is unexpected."""
    if isinstance(error, OSError | StorageError):
        return (isinstance(error, OSError) and error.strerror) or str(error)
    return exhausted(error)


async def _sweep_idle(broker: Broker, connections: Connections) -> None:
    """Close connections on which nothing has arrived or left for `connections.max.idle.ms`; trim idle buffers.

    A connection whose handler runs (a long poll, a rebalance) is not idle, nor is one whose peer takes an answer,
    however slowly.
    """
    seen: dict[object, tuple[int, int, float]] = {}
    while True:
        limit = broker.settings.int("connections.max.idle.ms") / 1000
        await standstill.sleep(max(min(limit / _IDLE_CHECKS, _SWEEP_S), 0.05) if limit >= 0 else _SWEEP_S)
        now = trio.current_time()
        before, seen, pace = seen, {}, Pace()
        for connection in list(connections.all):
            await pace.turn()
            if connection not in connections.all:
                continue
            arrivals, acknowledged, since = before.get(connection, (-1, -1, now))
            found = connection.arrivals, connection.acknowledged
            if arrivals == found[0] and connection.waits:
                connection.end_if_abandoned()
            elif (arrivals, acknowledged) != found or connection.reads_disk:
                since = now
            else:
                connection.shrink_buffer()
                if now - since >= limit >= 0:
                    logger.info("closing the idle connection from %s", connection)
                    connection.abort()
            seen[connection] = (*found, since)
