"""`topics create`, `topics alter` and `topics delete`. Settings of topics that exist are changed by `configs alter`."""

from typing import Any, Final

import click

from leafcuttr.cli.common.completion import complete_topics
from leafcuttr.cli.common.librdkafka.admin import Admin
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import ItemResults, count, json_option
from leafcuttr.cli.common.pairs import pairs
from leafcuttr.cli.common.target import Target

_MOST_PARTITIONS: Final = 100_000
_MOST_COPIES: Final = 10_000
"""The most that librdkafka requests of a broker."""


def _assignment(text: str | None) -> list[list[int]] | None:
    """`0:1,1:2` is partition 0 on brokers 0 and 1, partition 1 on brokers 1 and 2."""
    if text is None:
        return None
    try:
        brokers = [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
        if all(0 <= broker < 2**31 for copies in brokers for broker in copies):
            return brokers
    except ValueError:
        pass
    raise click.UsageError(
        f"--replica-assignment {text}: expected BROKER:BROKER,... with one group for each partition"
    )


@click.command(short_help="Create topics.")
@target_options
@json_option
@click.argument("topics", nargs=-1, required=True)
@click.option(
    "--partitions",
    "-p",
    type=click.IntRange(1, _MOST_PARTITIONS),
    metavar="NUMBER",
    help="How many; the broker's num.partitions if left out.",
)
@click.option(
    "--replication-factor",
    "-r",
    type=click.IntRange(1, _MOST_COPIES),
    metavar="NUMBER",
    help="Copies of each partition; the broker's default.replication.factor if left out.",
)
@click.option(
    "--replica-assignment",
    metavar="BROKER:BROKER,...",
    help="The brokers of each partition, instead of the two numbers.",
)
@click.option(
    "--config", "-c", "configs", multiple=True, metavar="KEY=VALUE", help="A topic setting; may be repeated."
)
@click.option("--if-not-exists", is_flag=True, help="An existing topic is no error.")
@click.option("--dry-run", is_flag=True, help="Let the broker check it and create nothing.")
def create(
    target: Target,
    as_json: bool,
    topics: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    """Create one or more topics.

    \b
    Examples:
      leafcuttr topics create orders -p 6
      leafcuttr topics create logs -c retention.ms=3600000 -c compression.type=zstd
      leafcuttr topics create payments -p 12 -r 3 -b kafka.example.org:9092
    """
    from confluent_kafka.admin import NewTopic

    config = pairs("--config", configs)
    how: dict[str, Any] = {"num_partitions": partitions or -1, "replication_factor": replication_factor or -1}
    assignment = _assignment(replica_assignment)
    if assignment is not None:
        if partitions is not None or replication_factor is not None:
            raise click.UsageError("--replica-assignment: not with --partitions or --replication-factor")
        how = {"num_partitions": len(assignment), "replica_assignment": assignment}
    admin = Admin(target)
    existing = set(admin.topics()) if if_not_exists else set()
    results = ItemResults("topic", as_json)
    for topic in dict.fromkeys(topics):
        if topic in existing:
            results.done(topic, f"{topic} exists already", created=False)
    new = [NewTopic(topic, config=config, **how) for topic in dict.fromkeys(topics) if topic not in existing]
    futures = admin.client.create_topics(new, validate_only=dry_run, **admin.wait) if new else {}
    for topic, future in futures.items():
        why = admin.outcome(future)
        if why is None:
            results.done(topic, f"{'would create' if dry_run else 'created'} {topic}", created=not dry_run)
        elif if_not_exists and "(TOPIC_ALREADY_EXISTS)" in why:
            results.done(topic, f"{topic} exists already", created=False)
        else:
            results.failed(topic, why, created=False)
    results.finish()


@click.command(short_help="Increase the number of partitions.")
@target_options
@json_option
@click.argument("topics", nargs=-1, required=True, shell_complete=complete_topics)
@click.option(
    "--partitions",
    "-p",
    type=click.IntRange(1, _MOST_PARTITIONS),
    required=True,
    metavar="NUMBER",
    help="The new number, greater than the present one.",
)
@click.option(
    "--replica-assignment", metavar="BROKER:BROKER,...", help="The brokers of each partition that is added."
)
@click.option("--if-exists", is_flag=True, help="A topic that does not exist is no error.")
@click.option("--dry-run", is_flag=True, help="Let the broker check it and change nothing.")
def alter(
    target: Target,
    as_json: bool,
    topics: tuple[str, ...],
    partitions: int,
    replica_assignment: str | None,
    if_exists: bool,
    dry_run: bool,
) -> None:
    """Increase the number of partitions of topics; it cannot be decreased.

    Afterwards producers choose other partitions for keys, because the choice depends on the number of partitions.
    Settings are changed with `leafcuttr configs alter`.

    \b
    Examples:
      leafcuttr topics alter orders -p 12
    """
    from confluent_kafka.admin import NewPartitions

    assignment = _assignment(replica_assignment)
    more: dict[str, Any] = {} if assignment is None else {"replica_assignment": assignment}
    admin = Admin(target)
    results = ItemResults("topic", as_json)
    wanted = _existing(admin, topics, if_exists, results, altered=False)
    new = [NewPartitions(topic, partitions, **more) for topic in wanted]
    futures = admin.client.create_partitions(new, validate_only=dry_run, **admin.wait) if new else {}
    for topic, future in futures.items():
        why = admin.outcome(future)
        if why is None:
            said = "would have" if dry_run else "has"
            results.done(topic, f"{topic} {said} {count(partitions, 'partition')}", altered=not dry_run)
        else:
            results.failed(topic, why, altered=False)
    results.finish()


@click.command(short_help="Delete topics with all their records.")
@target_options
@json_option
@click.argument("topics", nargs=-1, required=True, shell_complete=complete_topics)
@click.option("--if-exists", is_flag=True, help="A topic that does not exist is no error.")
def delete(target: Target, as_json: bool, topics: tuple[str, ...], if_exists: bool) -> None:
    """Delete topics with all their records.

    \b
    Examples:
      leafcuttr topics delete orders logs
      leafcuttr topics delete scratch --if-exists
    """
    admin = Admin(target)
    results = ItemResults("topic", as_json)
    wanted = _existing(admin, topics, if_exists, results, deleted=False)
    futures = admin.client.delete_topics(wanted, **admin.wait) if wanted else {}
    for topic, future in futures.items():
        why = admin.outcome(future)
        if why is None:
            results.done(topic, f"deleted {topic}", deleted=True)
        else:
            results.failed(topic, why, deleted=False)
    results.finish()


def _existing(
    admin: Admin, topics: tuple[str, ...], if_exists: bool, results: ItemResults, **more: bool
) -> list[str]:
    """The topics to work on, each once; those that are not there are left to the broker unless --if-exists."""
    wanted = list(dict.fromkeys(topics))
    if not if_exists:
        return wanted
    known = admin.topics()
    for topic in wanted:
        if topic not in known:
            results.done(topic, f"there is no topic {topic}", **more)
    return [topic for topic in wanted if topic in known]
