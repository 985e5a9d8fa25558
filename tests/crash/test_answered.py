"""What has been answered holds after SIGKILL, and what the disk has refused is not answered: single requests to a real
broker, at the moments that the random kills of `test_crash.py` seldom meet."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from leafcuttr.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from leafcuttr.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from support.broker_process import running_broker
from support.logs import batch
from support.wire_client import WireClient

EARLIEST, LATEST = -2, -1

# Every sync of a file fails as long as the file that SYNC_FAILS names is there; nothing else changes.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int fd) {
    char link[64], path[PATH_MAX];
    ssize_t size;
    const char *trigger = getenv("SYNC_FAILS");
    if (trigger == NULL || access(trigger, F_OK) != 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, path, sizeof path - 1);
    if (size < 4) return 0;
    path[size] = 0;
    return strcmp(path + size - 4, ".log") == 0;
}

#define SYNC(name)                                             \\
    int name(int fd) {                                         \\
        static int (*real)(int);                               \\
        if (fails(fd)) { errno = EIO; return -1; }             \\
        if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, #name); \\
        return real(fd);                                       \\
    }
SYNC(fsync)
SYNC(fdatasync)
"""


def create(client: WireClient, topic: str, **config: str) -> None:
    configs = [
        CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in config.items()
    ]
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=configs)],
        timeout_ms=30_000,
    )
    assert client.ask(request, 5).topics[0].error_code == ErrorCode.NONE


def test_records_that_are_answered_as_deleted_stay_deleted(tmp_path: Path) -> None:
    before = 0
    for start in (4, 7, 9):
        with running_broker(tmp_path) as broker, WireClient(broker.address) as client:
            if not before:
                create(client, "orders")
                for _ in range(10):
                    assert client.produce("orders", batch()).error_code == ErrorCode.NONE
            assert client.list_offset("orders", EARLIEST).offset == before
            partitions = [DeleteRecordsPartition(partition_index=0, offset=start)]
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name="orders", partitions=partitions)], timeout_ms=30_000
            )
            answer = client.ask(request, 2)
            broker.stop(signal.SIGKILL)
            assert [part.low_watermark for part in answer.topics[0].partitions] == [start]
            before = start
    with running_broker(tmp_path) as broker, WireClient(broker.address) as client:
        ends = [client.list_offset("orders", which).offset for which in (EARLIEST, LATEST)]
        assert ends == [9, 10]


@pytest.mark.parametrize(
    ("point", "rate"), [("", 1000.0), ("metadata.before-commit", 1000.0), ("metadata.committed", 2000.0)]
)
def test_a_quota_that_is_answered_is_there_after_a_kill(tmp_path: Path, point: str, rate: float) -> None:
    """Also if a later change of it was under way; that one is there whole or not at all."""

    def set_rate(value: float) -> int:
        op = OpData(key="producer_byte_rate", value=value, remove=False)
        entity = EntityData(entity_type="user", entity_name="alice")
        request = AlterClientQuotasRequest(
            entries=[RequestEntryData(entity=[entity], ops=[op])], validate_only=False
        )
        return int(client.ask(request, 1).entries[0].error_code)

    armed = tmp_path / "armed"
    with (
        running_broker(tmp_path, environ={"LEAFCUTTR_CRASH_POINT": f"@{armed}"}) as broker,
        WireClient(broker.address) as client,
    ):
        assert set_rate(1000.0) == ErrorCode.NONE
        if point:
            armed.write_text(point)
            with pytest.raises(ConnectionError):
                set_rate(2000.0)
        broker.stop(signal.SIGKILL)
    with running_broker(tmp_path) as broker, WireClient(broker.address) as client:
        (entry,) = client.ask(DescribeClientQuotasRequest(components=[], strict=False), 1).entries
    assert [(one.key, one.value) for one in entry.values] == [("producer_byte_rate", rate)]


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler here, which makes the system call fail")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    library = folder / "shim.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(folder / "shim.c"), "-ldl"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"the C compiler here makes no shared library: {built.stderr[-500:]}")
    return library


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_disk_that_fails_a_sync_takes_one_partition_with_it(
    tmp_path: Path, shim: Path, how: signal.Signals
) -> None:
    trigger = tmp_path / "fails"
    environ = {"LD_PRELOAD": str(shim), "SYNC_FAILS": str(trigger)}
    with running_broker(tmp_path, environ=environ) as broker, WireClient(broker.address) as client:
        create(client, "flushed", flush_messages="3")
        create(client, "other")
        for _ in range(5):  # the first three are synced
            assert client.produce("flushed", batch()).error_code == ErrorCode.NONE
        trigger.touch()
        assert client.produce("flushed", batch()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.produce("flushed", batch()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.produce("other", batch()).error_code == ErrorCode.NONE
        assert broker.log.count("flushed-0 is offline") == 1
        trigger.unlink()
        assert client.produce("flushed", batch()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        broker.stop(how)
    # What a page that was never written looks like once the kernel has let go of it.
    log = broker.data / "flushed-0" / f"{0:020d}.log"
    size = len(batch())
    with log.open("r+b") as file:
        assert os.fstat(file.fileno()).st_size == 5 * size
        file.seek(4 * size + 70)
        file.write(bytes(4))
    with running_broker(tmp_path) as broker, WireClient(broker.address) as client:
        assert client.list_offset("flushed", LATEST).offset == 4
        assert client.produce("flushed", batch()).base_offset == 4
        assert client.list_offset("other", LATEST).offset == 1
        assert "flushed-0: a sync of it has failed" in broker.log
