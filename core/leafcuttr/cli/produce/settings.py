"""The settings of librdkafka that the options of `leafcuttr produce` mean."""

from typing import Any

import click

from leafcuttr.cli.common.librdkafka.client import client_settings
from leafcuttr.cli.common.target import TIMEOUT_S


def settings_of(given: dict[str, Any]) -> dict[str, Any]:
    """Settings of a producer. Raises click.UsageError for options that exclude each other."""
    from leafcuttr.cli.common.records.sending import LONGEST_BYTES, QUEUE_BYTES, TOPIC_MADE_MS

    settings = client_settings(
        given["address"],
        given["properties"],
        **{
            "compression.type": given["compression"],
            "linger.ms": 20,
            "partitioner": "murmur2_random",
            "message.max.bytes": LONGEST_BYTES,
            "queue.buffering.max.kbytes": QUEUE_BYTES >> 10,
            "message.timeout.ms": int(TIMEOUT_S * 1000),
            "topic.metadata.propagation.max.ms": TOPIC_MADE_MS,
        },
    )
    own_acks = "acks" in settings or "request.required.acks" in settings
    if not own_acks:
        settings["acks"] = given["acks"]
    if given["transactional_id"] is not None:
        if given["idempotence"] is False or given["acks"] != "all":
            raise click.UsageError("--transactional-id needs --acks all and idempotence")
        settings["transactional.id"] = given["transactional_id"]
    elif given["idempotence"] and given["acks"] != "all":
        raise click.UsageError("--idempotence needs --acks all")
    elif given["idempotence"] is not None:
        settings["enable.idempotence"] = given["idempotence"]
    elif given["acks"] == "all" and not own_acks:
        settings.setdefault("enable.idempotence", True)
    return settings


def limit_of(settings: dict[str, Any], usual: int) -> int:
    """How long a record may be; the queue is made to hold two of them."""
    try:
        limit = int(settings["message.max.bytes"])
        settings["queue.buffering.max.kbytes"] = max(
            int(settings["queue.buffering.max.kbytes"]), limit * 2 >> 10
        )
    except ValueError:
        return usual  # the client says what is wrong with it
    return limit
