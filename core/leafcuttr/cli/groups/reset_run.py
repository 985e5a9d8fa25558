"""One run of `groups reset-offsets`: a plan, printed or exported; carried out if that is wanted."""

import functools
from typing import IO, Any

import click

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.librdkafka.admin import Admin
from leafcuttr.cli.common.options.partitions import Selection, select
from leafcuttr.cli.common.output import print_json, print_table, printable, progress
from leafcuttr.cli.groups import find, plan_file
from leafcuttr.cli.groups.new_offsets import Mode, new_offsets
from leafcuttr_sdk.types import TopicPartition


class ResetRun:
    """The plan of each group, and why a group or a partition was left alone."""

    def __init__(self, admin: Admin, groups: list[str]) -> None:
        self._admin = admin
        self._committed: dict[str, dict[TopicPartition, int]] = {}
        self._plan: plan_file.OffsetPlan = {}
        self._errors: dict[tuple[str, TopicPartition | None], str] = {}
        self._groups = groups

    def plan(self, mode: Mode, topics: tuple[Selection, ...]) -> None:
        """Find the new offsets of every group without members."""
        listed = None
        if mode.name == "from-file":
            listed = plan_file.read(_text(mode.value), mode.value.name, self._groups)
        known = self._admin.partitions()
        chosen = select(topics, known)
        for group in self._idle():
            self._committed[group] = committed = self._admin.committed(group)
            wanted = chosen or sorted(committed)
            if listed is not None:
                mode = Mode(mode.name, listed[group])
                wanted = list(listed[group])
            warn = functools.partial(_warn, group)
            try:
                select([Selection(tp.topic, (tp.partition,)) for tp in wanted], known)
                self._plan[group] = new_offsets(self._admin, mode, wanted, committed, warn)
            except Failure as failure:
                self._errors[group, None] = failure.message

    def _idle(self) -> list[str]:
        found = []
        for group, about in self._admin.groups(self._groups).items():
            state = find.word(about.state)
            if state in find.INACTIVE:
                found.append(group)
            else:
                self._errors[group, None] = (
                    f"the group is {state}: its members would commit over the new offsets; stop them first"
                )
        return found

    def execute(self) -> None:
        """Commit what is planned."""
        with progress("groups", len(self._plan)) as advance:
            for group, offsets in self._plan.items():
                if offsets:
                    self._commit(group, offsets)
                advance(1)

    def _commit(self, group: str, offsets: dict[TopicPartition, int]) -> None:
        import confluent_kafka
        from confluent_kafka import ConsumerGroupTopicPartitions

        parts = [confluent_kafka.TopicPartition(*tp, offset) for tp, offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group, parts)]
        client, wait = self._admin.client, self._admin.wait
        try:
            answer = self._admin.patiently(
                lambda: client.alter_consumer_group_offsets(request, **wait)[group]
            )
        except Failure as failure:
            self._errors[group, None] = failure.message
            return
        for part in answer.topic_partitions:
            if part.error is not None:
                self._errors[group, TopicPartition(part.topic, part.partition)] = part.error.str()

    def show(self, as_json: bool, export: bool, several: bool, executed: bool) -> None:
        """Print plan or outcome; raises Failure if something was left alone."""
        if export:
            click.echo(plan_file.write(self._plan, several), nl=False)
        elif as_json:
            print_json({"executed": executed, "offsets": self._rows(), "errors": self._failures()})
        else:
            print_table(
                ("GROUP", "TOPIC", "PARTITION", "COMMITTED", "NEW OFFSET"),
                [tuple(row.values()) for row in self._rows()],
            )
        if self._rows() and not executed and not export and not as_json:
            click.echo("Nothing is changed; --execute does it.", err=True)
        if self._errors:
            raise Failure("; ".join(printable(text) for text in self._failures()))

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "group": group,
                "topic": tp.topic,
                "partition": tp.partition,
                "committed": self._committed[group].get(tp),
                "offset": offset,
            }
            for group, offsets in self._plan.items()
            for tp, offset in offsets.items()
            if (group, None) not in self._errors and (group, tp) not in self._errors
        ]

    def _failures(self) -> list[str]:
        return [
            f"{group}: {why}" if tp is None else f"{group}: {tp}: {why}"
            for (group, tp), why in self._errors.items()
        ]


def _text(file: IO[str]) -> str:
    try:
        return file.read()
    except UnicodeDecodeError:
        raise Failure(f"{file.name}: not a text file in UTF-8") from None


def _warn(group: str, text: str) -> None:
    click.echo(printable(f"leafcuttr: {group}: {text}"), err=True)
