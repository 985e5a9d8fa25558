"""The part of the check of a peer that needs no reader: topics, offsets, groups, claims."""

from typing import Final

import trio

from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidTopic,
    TopicAlreadyExists,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.peers import PeerClaim
from leafcuttr_sdk.testing.peer_trial import PeerTrial, new
from leafcuttr_sdk.types import TopicPartition

_TIMES: Final = (1_700_000_001_000, 1_700_000_002_000, 1_700_000_003_000)
_SESSION_MS: Final = 6000
_HELD_S: Final = 1.5
"""How long one that waits gets nothing, once it is told so."""
_TOLD_S: Final = 30.0
"""Only a bound for a peer that does not tell."""


class ClusterTrial:
    """Its parts; each has topics and groups of its own."""

    def __init__(self, trial: PeerTrial) -> None:
        self._trial = trial
        self._peer = trial.peer

    async def cluster(self) -> None:
        trial, peer = self._trial, self._peer
        cluster = await peer.cluster_id()
        if not cluster:
            trial.wrong("the id of the cluster is empty")
        trial.same("the id by the second peer", await trial.second.cluster_id(), cluster)
        if await peer.node_count() < 1:
            trial.wrong("the cluster has no broker")
        trial.same("what is wrong with a cluster that answers", peer.trouble, None)
        if not peer.name:
            trial.wrong("the name is empty")

    async def topics(self) -> None:
        trial, peer = self._trial, self._peer
        name, missing = trial.name("topic"), trial.name("missing")
        await peer.create_topic(name, partitions=2, replication_factor=1, configs={"retention.ms": "3600000"})
        found = await peer.topics([name, missing])
        trial.same("the topics that exist", list(found), [name])
        trial.same("the number of partitions", found[name].partitions, 2)
        if found[name].internal:
            trial.wrong("a topic of ours is internal")
        everything = await peer.topics()
        trial.same("the topic among all", everything.get(name), found[name])
        if missing in everything:
            trial.wrong("a topic was created by a look at it")

        async def settings() -> object:
            configs = await peer.topic_configs([name, missing])
            return {each: dict(given) for each, given in configs.items()}

        async def count() -> object:
            return (await peer.topics([name]))[name].partitions

        await trial.becomes("its settings", settings, {name: {"retention.ms": "3600000"}})
        await peer.alter_topic(name, {"max.message.bytes": "2000"})
        await peer.alter_topic(name, {"retention.ms": None})
        await trial.becomes("its settings after a change", settings, {name: {"max.message.bytes": "2000"}})
        await peer.add_partitions(name, 4)
        await trial.becomes("the number of partitions that were added", count, 4)
        found = await peer.topics([name])
        trial.same("the topic that is to be there", await peer.ensure_topic(name), found[name])
        await self._refused(name, missing)

    async def _refused(self, name: str, missing: str) -> None:
        trial, peer = self._trial, self._peer
        with trial.raises("a topic that exists", TopicAlreadyExists):
            await peer.create_topic(name, partitions=1)
        with trial.raises("a topic with a slash", InvalidTopic):
            await peer.create_topic("a/b", partitions=1)
        with trial.raises("a topic with a slash that is to be there", InvalidTopic):
            await peer.ensure_topic("a/b")
        with trial.raises("a topic without partitions", InvalidPartitions):
            await peer.create_topic(missing, partitions=0)
        with trial.raises("more replicas than brokers", InvalidReplicationFactor):
            await peer.create_topic(missing, partitions=1, replication_factor=1 + await peer.node_count())
        with trial.raises("a setting that is none", InvalidConfig):
            await peer.create_topic(missing, partitions=1, configs={"retention.ms": "soon"})
        with trial.raises("a change to a setting that is none", InvalidConfig):
            await peer.alter_topic(name, {"retention.ms": "soon"})
        with trial.raises("fewer partitions", InvalidPartitions):
            await peer.add_partitions(name, 1)
        with trial.raises("partitions of a topic that is missing", UnknownTopicOrPartition):
            await peer.add_partitions(missing, 9)
        with trial.raises("a change to a topic that is missing", UnknownTopicOrPartition):
            await peer.alter_topic(missing, {"retention.ms": "1"})
        trial.same("the topics after refusals", dict(await peer.topics([missing])), {})

    async def offsets(self) -> None:
        trial, peer = self._trial, self._peer
        first, second = await trial.topic("offsets", 2)
        missing = TopicPartition(trial.name("missing"), 0)
        beyond = TopicPartition(first.topic, 99)
        async with peer.appender() as appender:
            trial.all_appended(await appender.append([new(first, b"x", timestamp=time) for time in _TIMES]))
        some = [first, second, missing, beyond]
        for what, time, wanted in (
            ("the beginnings", EARLIEST, {first: 0, second: 0}),
            ("the ends", LATEST, {first: 3, second: 0}),
            ("the first of a time", _TIMES[1], {first: 1, second: 0}),
            ("the first after a time", _TIMES[1] + 1, {first: 2, second: 0}),
            ("after all times", _TIMES[2] + 1, {first: 3, second: 0}),
        ):
            trial.same(what, await peer.offsets(dict.fromkeys(some, time)), wanted)
        mixed = await peer.offsets({first: _TIMES[0], second: LATEST})
        trial.same("different times together", mixed, {first: 0, second: 0})
        if await peer.has_transactions():
            async with peer.transaction(trial.name("id")) as producer, producer.begin() as transaction:
                await transaction.append([new(first, b"open", timestamp=_TIMES[2])])
                trial.same(
                    "the end with an open transaction", await peer.offsets({first: LATEST}), {first: 4}
                )
                stable = await peer.offsets({first: LATEST}, committed=True)
                trial.same("the last stable offset", stable, {first: 3})
                stable = await peer.offsets({first: _TIMES[2] + 1}, committed=True)
                trial.same("after all times that are stable", stable, {first: 3})
                await transaction.abort()

    async def epochs(self) -> None:
        trial, peer = self._trial, self._peer
        first, second = await trial.topic("epochs", 2)
        async with trial.filled(first, b"a", b"b"):
            pass
        epochs = (await peer.topics([first.topic]))[first.topic].leader_epochs
        if -1 in epochs:
            return  # a cluster that does not tell them
        missing = TopicPartition(trial.name("missing"), 0)
        ends = await peer.epoch_end({first: epochs[0], second: epochs[1], missing: 0})
        trial.same("where the epochs ended", ends, {first: (epochs[0], 2), second: (epochs[1], 0)})
        unknown = await peer.epoch_end({first: epochs[0] + 1000})
        trial.same("where an epoch ended that never was", unknown, {first: (-1, -1)})

    async def groups(self) -> None:
        trial, peer = self._trial, self._peer
        (partition,) = await trial.topic("groups")
        group, missing = trial.name("group"), trial.name("missing")
        trial.same("the offsets of a group that is missing", dict(await peer.committed(missing)), {})
        trial.same("whether a group that is missing is active", await peer.group_is_active(missing), False)
        for offset in (CommittedOffset(0), CommittedOffset(7, "a note")):
            await peer.commit(group, {partition: offset})
            trial.same("the offsets of a group", dict(await peer.committed(group)), {partition: offset})
        trial.same("whether a group without members is active", await peer.group_is_active(group), False)
        if group not in await peer.groups():
            trial.wrong("a group that has committed is not among the groups")
        if missing in await peer.groups():
            trial.wrong("a group is there because it was looked for")
        name = trial.name("claim")
        async with peer.claim(name, session_timeout_ms=_SESSION_MS):
            trial.same("whether a group with a member is active", await peer.group_is_active(name), True)
            with trial.raises("a commit for a group with a member", UnknownMemberId):
                await peer.commit(name, {partition: CommittedOffset(1)})
            if name in await peer.groups():
                trial.wrong("a claim is among the groups of consumers")

    async def claims(self) -> None:
        trial, name = self._trial, self._trial.name("claim")
        released, taken = trio.Event(), trio.Event()

        async def first(task_status: trio.TaskStatus[PeerClaim]) -> None:
            async with self._peer.claim(name, session_timeout_ms=_SESSION_MS) as claim:
                task_status.started(claim)
                await released.wait()

        async def second() -> None:
            async with trial.second.claim(name, session_timeout_ms=_SESSION_MS) as claim:
                if not claim.is_held:
                    trial.wrong("a claim that was entered is not held")
                if not released.is_set():
                    trial.wrong("two have one name")
                taken.set()

        async with trio.open_nursery() as nursery:
            held = await nursery.start(first)
            told: list[str | None] = []

            def waits(why: str | None) -> None:
                told.append(why)
                waiting.deadline = min(waiting.deadline, trio.current_time() + _HELD_S)

            with trio.move_on_after(_TOLD_S) as waiting:
                async with trial.second.claim(name, session_timeout_ms=_SESSION_MS, on_wait=waits):
                    trial.wrong("two have one name")
            trial.same("what one is told that waits", told[:1], [None])
            async with trial.second.claim(trial.name("other"), session_timeout_ms=_SESSION_MS) as other:
                trial.same("whether another name is held", other.is_held, True)
            nursery.start_soon(second)
            with trio.move_on_after(_HELD_S):
                await held.lost()
                trial.wrong("it was lost to one that came later")
            trial.same("whether it is held", held.is_held, True)
            released.set()
            before = trio.current_time()
            await taken.wait()
            if trio.current_time() - before > _SESSION_MS / 2000:
                trial.wrong("one that was given up was free at the end of its session only")
