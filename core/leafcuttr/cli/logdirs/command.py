"""`leafcuttr logdirs`: what kafka-log-dirs does, through our own client: librdkafka does not have DescribeLogDirs."""

from typing import Any

import click

from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.options.partitions import Selection, by_topic, partitions_argument, select
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import json_option, print_json, print_table, printable, progress, size
from leafcuttr.cli.common.target import Target


@click.command()
@target_options
@json_option
@partitions_argument()
@click.option("--broker", "-B", "brokers", multiple=True, type=int, help="Only this broker; may be repeated.")
@click.option("--partitions", is_flag=True, help="Show each partition, not only each directory.")
def command(
    target: Target, as_json: bool, topics: tuple[Selection, ...], brokers: tuple[int, ...], partitions: bool
) -> None:
    """Print what the log directories of the brokers hold, and how much space is free; by partition, if some are named.

    Sizes are those of the copies that a broker has, in bytes in JSON.

    \b
    Examples:
      leafcuttr logdirs
      leafcuttr logdirs orders
      leafcuttr logdirs --partitions --broker 1 --json

    Exit status: 0 done, 1 a directory is offline, a broker refused or cannot be reached, 2 wrong usage.
    """
    found = _describe(target, topics, list(dict.fromkeys(brokers)))
    if as_json:
        print_json(found)
    elif partitions or topics:
        _print_partitions(found)
    else:
        _print_directories(found)
    bad = [
        f"broker {each['broker']}, {each['directory']}: {each['error']}" for each in found if each["error"]
    ]
    if bad:
        raise Failure(printable("; ".join(bad)))


def _describe(target: Target, topics: tuple[Selection, ...], brokers: list[int]) -> list[dict[str, Any]]:
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient
    from leafcuttr.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

    found = []
    with ClusterClient(target) as cluster:
        wanted = None
        if topics:
            wanted = [
                DescribableLogDirTopic(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(select(topics, cluster.topics())).items()
            ]
        wanted_brokers = brokers or list(cluster.brokers())
        with progress("brokers", len(wanted_brokers)) as advance:
            for broker in wanted_brokers:
                answer = cluster.send(broker, DescribeLogDirsRequest(topics=wanted))
                if answer.error_code:
                    raise Failure(f"broker {broker}: {reason(answer.error_code)}")
                found += [_directory(broker, result) for result in answer.results]
                advance(1)
    return found


def _directory(broker: int, result: Any) -> dict[str, Any]:
    return {
        "broker": broker,
        "directory": result.log_dir,
        "error": reason(result.error_code) if result.error_code else None,
        # Brokers before Kafka 3.3 do not report it (KIP-827).
        "total_bytes": result.total_bytes if result.total_bytes >= 0 else None,
        "free_bytes": result.usable_bytes if result.usable_bytes >= 0 else None,
        "cordoned": result.is_cordoned,
        "partitions": sorted(
            (
                {
                    "topic": topic.name,
                    "partition": part.partition_index,
                    "bytes": part.partition_size,
                    "lag": part.offset_lag,
                    "future": part.is_future_key,
                }
                for topic in result.topics
                for part in topic.partitions
            ),
            key=lambda part: (part["topic"], part["partition"]),
        ),
    }


def _print_directories(found: list[dict[str, Any]]) -> None:
    print_table(
        ("BROKER", "DIRECTORY", "PARTITIONS", "SIZE", "DISK", "FREE"),
        [
            (
                each["broker"],
                each["directory"],
                len(each["partitions"]),
                size(sum(part["bytes"] for part in each["partitions"])),
                None if each["total_bytes"] is None else size(each["total_bytes"]),
                None if each["free_bytes"] is None else size(each["free_bytes"]),
            )
            for each in found
        ],
    )


def _print_partitions(found: list[dict[str, Any]]) -> None:
    """LAG is how far a copy is behind its leader, or a future copy behind the current one."""
    print_table(
        ("BROKER", "DIRECTORY", "TOPIC", "PARTITION", "SIZE", "LAG", "STATE"),
        [
            (
                each["broker"],
                each["directory"],
                part["topic"],
                part["partition"],
                size(part["bytes"]),
                part["lag"],
                "moving in" if part["future"] else "current",
            )
            for each in found
            for part in each["partitions"]
        ],
    )
