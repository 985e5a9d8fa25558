"""`leafcuttr repair`: repair a data directory, or adopt topic folders into it.

The work is `leafcuttr.offline.repair` and `leafcuttr.offline.adopt`; this module shows the plan and writes metadata.
Exit status: 0 nothing to do or done, 1 there is something to do (without --execute) or left that cannot be done,
2 wrong usage, or the directory is in use or unreadable.
"""

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leafcuttr.cli.common.offline import fail, known_topics, progress_bar, stored_topics, unused
from leafcuttr.cli.common.output import json_option, print_json
from leafcuttr.cli.repair.report import RepairReport

if TYPE_CHECKING:
    from leafcuttr.offline.adopt import Adoptable
    from leafcuttr.offline.verify import KnownTopic


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--execute", is_flag=True, help="Carry the plan out; without this it is only shown.")
@click.option(
    "--metadata", is_flag=True, help="Rebuild a lost or damaged metadata file from the partition folders."
)
@click.option("--adopt", is_flag=True, help="Add topic folders to the metadata that are not in it.")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="With --adopt: copy the folders from this data directory (or this one folder) first.",
)
@click.option("--topic", "only", multiple=True, help="With --adopt: only this topic; may be repeated.")
@click.option(
    "--config",
    "-c",
    "configs",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --adopt: a setting of the adopted topics; may be repeated.",
)
@json_option
def command(
    directory: Path,
    execute: bool,
    metadata: bool,
    adopt: bool,
    source: Path | None,
    only: tuple[str, ...],
    configs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Repair a data directory, or adopt topic folders that Apache Kafka 4 or another LeafCuttr wrote.

    DIRECTORY is the data directory, or with --adopt also a single partition folder in it. The broker must not be
    running on it. First the plan is shown; --execute carries it out. Damaged bytes that are taken out of a log are
    kept beside it as *.damaged.

    Exit status: 0 nothing to do or done, 1 there is something to do (without --execute) or left that cannot be done,
    2 wrong usage, or the directory is in use or unreadable.

    Adopting: the settings of a topic are not in its folders. Give them with --config, or the broker's defaults hold,
    retention too. Internal topics (__*) are adopted only if --topic names them.

    Rebuilding the metadata: names, partitions and ids of topics are in the folders. Settings of topics and of the
    broker are not; until they are set again nothing is deleted by age or size. Committed offsets are kept, they are
    records. The damaged file is kept as metadata.sqlite.damaged.

    \b
    Examples:
      leafcuttr repair ./leafcuttr-data
      leafcuttr repair --execute ./leafcuttr-data
      leafcuttr repair --json ./leafcuttr-data
      leafcuttr repair --metadata --execute ./leafcuttr-data
      leafcuttr repair --adopt --execute /var/lib/kafka
      leafcuttr repair --adopt --from /mnt/old-kafka --topic orders -c retention.ms=-1 --execute ./leafcuttr-data
    """
    from leafcuttr.cli.repair.metadata import rebuild
    from leafcuttr.errors import BrokerError, StartError
    from leafcuttr.log.layout.folders import partition_of

    if not adopt and (source or only or configs):
        raise click.UsageError("--from, --topic and --config belong to --adopt")
    if metadata and adopt:
        raise click.UsageError("--metadata comes before --adopt, not with it")
    overrides = _overrides(configs)
    report = RepairReport(execute=execute, as_json=as_json)
    if adopt:
        single = source or directory
        partition = partition_of(single.resolve().name)
        if partition is not None and any(single.glob("*.log")):
            only = (*only, partition.topic)
            source, directory = (
                (single.resolve().parent, directory) if source else (None, single.resolve().parent)
            )
    try:
        with unused(directory):
            if metadata:
                done = rebuild(directory, report)
            elif adopt:
                done = _adopt(directory, source, only, overrides, report)
            else:
                done = _repair(directory, report)
    except OSError as error:
        fail(f"{error.filename or directory}: {error.strerror}")
    except (StartError, BrokerError) as error:
        fail(error)
    if as_json:
        print_json(report.json(directory, done=done))
    sys.exit(0 if done else 1)


def _overrides(configs: tuple[str, ...]) -> dict[str, str]:
    if not configs:
        return {}
    from leafcuttr.cli.common.installed import installed
    from leafcuttr.config.settings import Settings
    from leafcuttr.config.topic import validate_overrides
    from leafcuttr.errors import InvalidConfig
    from leafcuttr.plugins.catalogue import catalog_of

    overrides: dict[str, str] = {}
    for item in configs:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.UsageError(f"-c {item}: expected KEY=VALUE")
        overrides[name] = value
    try:
        validate_overrides(Settings({}, catalog_of(installed())), dict(overrides))
    except InvalidConfig as error:
        raise click.UsageError(str(error)) from error
    return overrides


def _repair(directory: Path, report: RepairReport) -> bool:
    from leafcuttr.offline.repair import plan_repair

    topics = known_topics(stored_topics(directory))
    with progress_bar("reading") as progress:
        plan = plan_repair(directory, topics=topics, progress=progress)
    for finding in plan.verified.problems:
        report.problem(finding)
    for text in plan.beyond:
        report.refused(text, f"cannot be repaired: {text}")
    if not plan.actions:
        report.line("nothing to repair" if not plan.verified.problems else "nothing that repair can do")
        return not plan.verified.problems
    for action in plan.actions:
        if report.execute:
            action.apply()
        report.step(str(action), f"{'done' if report.execute else 'would do'}: {action}")
    if not report.execute:
        report.line(f"{len(plan.actions)} steps; nothing has been changed, say --execute to do them")
    return report.execute and not plan.beyond


def _adopt(
    directory: Path,
    source: Path | None,
    only: tuple[str, ...],
    overrides: Mapping[str, str],
    report: RepairReport,
) -> bool:
    from leafcuttr.offline.adopt import plan_adoption, take_in
    from leafcuttr.state.metadata import MetadataStore, TopicRecord

    known: Mapping[str, KnownTopic] = known_topics(stored_topics(directory)) or {}
    origin = directory if source is None else source
    if source is not None:
        with unused(source):
            plan = plan_adoption(origin, known, only)
    else:
        plan = plan_adoption(origin, known, only)
    for text in plan.refused:
        report.refused(text, f"cannot adopt {text}", err=True)
    for topic in plan.topics:
        text = _describe(topic)
        report.step(f"adopt {text}", f"{'adopting' if report.execute else 'would adopt'} {text}")
    if not plan.topics:
        report.line("nothing to adopt")
        return not plan.refused
    if not report.execute:
        report.line("nothing has been changed, say --execute to do it")
        return False
    with contextlib.nullcontext() if source is None else unused(origin):
        take_in(plan, origin.resolve(), directory.resolve())
    store = MetadataStore.open(directory)
    try:
        store.add_topics(
            TopicRecord(topic.name, topic.id, len(topic.folders), _settings(topic, overrides))
            for topic in plan.topics
        )
    finally:
        store.close()
    report.line(f"{len(plan.topics)} topics adopted")
    return not plan.refused


def _settings(topic: "Adoptable", overrides: Mapping[str, str]) -> dict[str, str]:
    # What compaction has thinned out must not fall to the default policy, which deletes by age.
    compacted = {"cleanup.policy": "compact"} if topic.gaps else {}
    return {**compacted, **overrides}


def _describe(topic: "Adoptable") -> str:
    text = (
        f"{topic.name}: {len(topic.folders)} partitions, {topic.records} records, {topic.bytes / 1e6:.1f} MB"
    )
    if topic.gaps:
        text += "; it has been compacted, so cleanup.policy=compact"
    if topic.ragged:
        text += f"; {len(topic.ragged)} logs end in half a batch, which is cut"
    if topic.stale_indexes:
        text += f"; indexes of {len(topic.stale_indexes)} segments are built anew"
    return text
