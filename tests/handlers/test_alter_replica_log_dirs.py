"""AlterReplicaLogDirs: a replica has no other directory to move to."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_replica_moves_nowhere(broker: Broker, send: Any, version: int) -> None:
    await broker.topics.create("orders", 1, {})
    codes = {}
    for path in (str(broker.logs.directory), "/elsewhere", "relative"):
        requested = [
            AlterReplicaLogDirTopic(name="orders", partitions=[0, 9]),
            AlterReplicaLogDirTopic(name="missing", partitions=[0]),
        ]
        answer = await send(
            AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=requested)]), version
        )
        codes[path] = {
            (topic.topic_name, part.partition_index): part.error_code
            for topic in answer.results
            for part in topic.partitions
        }
    assert codes.pop(str(broker.logs.directory)) == {
        ("orders", 0): ErrorCode.NONE,
        ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("missing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    for elsewhere in codes.values():
        assert set(elsewhere.values()) == {ErrorCode.LOG_DIR_NOT_FOUND}
