"""`groups delete` and `groups delete-offsets`: they delete committed offsets, and no records."""

import click

from leafcuttr.cli.common.completion import complete_groups
from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.librdkafka.admin import Admin
from leafcuttr.cli.common.options.partitions import Selection, by_topic, partitions_argument, select
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import ItemResults, json_option
from leafcuttr.cli.common.target import Target
from leafcuttr.cli.groups import find
from leafcuttr_sdk.types import TopicPartition


@click.command(short_help="Delete groups without members.")
@target_options
@json_option
@click.argument("groups", nargs=-1, shell_complete=complete_groups)
@click.option("--all-groups", is_flag=True, help="Every group that has no members.")
def delete(target: Target, as_json: bool, groups: tuple[str, ...], all_groups: bool) -> None:
    """Delete groups without members, with the offsets that they have committed.

    \b
    Examples:
      leafcuttr groups delete billing reports
    """
    if bool(groups) == all_groups:
        raise click.UsageError("expected the names of groups, or --all-groups")
    admin = Admin(target)
    results = ItemResults("group", as_json)
    names = dict.fromkeys(groups)
    if all_groups:
        found = find.all_groups(admin)
        names = dict.fromkeys(name for name in found if find.word(found[name].state) in find.INACTIVE)
    futures = admin.client.delete_consumer_groups(list(names), **admin.wait) if names else {}
    for group, future in futures.items():
        why = admin.outcome(future)
        if why is None:
            results.done(group, f"deleted {group}")
        else:
            results.failed(group, why)
    results.finish()


@click.command("delete-offsets", short_help="Delete committed offsets.")
@target_options
@json_option
@click.argument("group", shell_complete=complete_groups)
@partitions_argument(required=True)
def delete_offsets(target: Target, as_json: bool, group: str, topics: tuple[Selection, ...]) -> None:
    """Delete the committed offsets of a group for topics that none of its members reads.

    \b
    Examples:
      leafcuttr groups delete-offsets billing orders
      leafcuttr groups delete-offsets billing orders:0,1 logs
    """
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient
    from leafcuttr.client.coordinators import CoordinatorKind
    from leafcuttr.wire.messages.offset_delete import (
        OffsetDeleteRequest,
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
    )

    results = ItemResults("partition", as_json)
    with ClusterClient(target) as cluster:
        wanted = by_topic(select(topics, cluster.topics()))
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers],
                )
                for topic, numbers in wanted.items()
            ],
        )
        answer = cluster.send_to_coordinator(
            CoordinatorKind.GROUP, group, request, lambda answer: int(answer.error_code)
        )
    if answer.error_code:
        raise Failure(f"{group}: {reason(answer.error_code)}")
    for topic in answer.topics:
        for part in topic.partitions:
            tp = str(TopicPartition(topic.name, part.partition_index))
            if part.error_code:
                results.failed(tp, reason(part.error_code))
            else:
                results.done(tp, f"{group} has no offset for {tp} now")
    results.finish()
