"""Broker settings of producers and transactions."""

from functools import partial
from typing import Final

from leafcuttr.config.setting import BOOLEAN, INT, SHORT, ConfigKey, Effect

NONE: Final = Effect.NONE
no_wait: Final = partial(
    ConfigKey, effect=Effect.NONE, reason="a partition is added within the request that needs it"
)

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    no_wait(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        "The longest pause before a partition is added to a transaction again.",
        unit="ms",
        minimum=0,
    ),
    no_wait(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        "The first pause before a partition is added to a transaction again.",
        unit="ms",
        minimum=1,
    ),
    ConfigKey(
        "producer.id.expiration.ms",
        INT,
        86_400_000,
        "How long the broker remembers an idempotent producer that is silent.",
        unit="ms",
        minimum=1,
        dynamic=True,
    ),
    ConfigKey(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        "How often transactions that took too long are aborted.",
        unit="ms",
        minimum=1,
    ),
    ConfigKey(
        "transaction.max.timeout.ms",
        INT,
        900_000,
        "The longest timeout that a transaction may request.",
        unit="ms",
        minimum=1,
    ),
    ConfigKey(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Check that a partition belongs to the transaction before it takes records of it.",
        dynamic=True,
    ),
    ConfigKey(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        "How often expired transactional ids are deleted.",
        unit="ms",
        minimum=1,
    ),
    ConfigKey(
        "transaction.state.log.load.buffer.size",
        INT,
        5_242_880,
        "How much is read at once when transactions are loaded at start.",
        unit="bytes",
        minimum=1,
    ),
    ConfigKey(
        "transaction.state.log.min.isr",
        INT,
        2,
        "In-sync replicas that a write to __transaction_state needs.",
        unit="replicas",
        minimum=1,
        effect=NONE,
        reason="there is no replication",
    ),
    ConfigKey(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "Partitions of __transaction_state; fixed once it exists.",
        unit="partitions",
        minimum=1,
    ),
    ConfigKey(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        "Replicas of __transaction_state.",
        unit="replicas",
        minimum=1,
        effect=NONE,
        reason="there is no replication: above 1 prints a warning and 1 is used",
    ),
    ConfigKey(
        "transaction.state.log.segment.bytes",
        INT,
        104_857_600,
        "The size of a segment of __transaction_state.",
        unit="bytes",
        minimum=1,
    ),
    ConfigKey(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        "Let a client hold a prepared transaction open without a timeout.",
        effect=NONE,
        reason="two-phase commit needs a version of InitProducerId that is not stable in Kafka yet",
    ),
    ConfigKey(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        "How long an unused transactional id is remembered.",
        unit="ms",
        minimum=1,
    ),
)
