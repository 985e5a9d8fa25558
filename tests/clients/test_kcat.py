"""kcat: Debian's librdkafka, some years older than that of confluent-kafka."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable

import pytest

Fresh = Callable[[str], str]
pytestmark = pytest.mark.skipif(
    shutil.which("kcat") is None, reason="kcat is not installed (apt-get install kcat)"
)
LINES = "".join(f"line {at}\n" for at in range(300))


def kcat(bootstrap: str, *arguments: str, given: str = "") -> str:
    command = ["kcat", "-b", bootstrap, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "codec",
    ["none", *(pytest.param(one, marks=pytest.mark.long) for one in ("gzip", "snappy", "lz4", "zstd"))],
)
def test_round_trip(bootstrap: str, fresh: Fresh, codec: str) -> None:
    topic = fresh("topic")
    kcat(bootstrap, "-P", "-t", topic, "-z", codec, "-X", "acks=all", given=LINES)
    assert kcat(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q") == LINES


def test_metadata_and_offsets(bootstrap: str, fresh: Fresh) -> None:
    topic = fresh("topic")
    kcat(bootstrap, "-P", "-t", topic, given="a\nb\nc\n")
    told = json.loads(kcat(bootstrap, "-L", "-J", "-t", topic))
    assert [one["topic"] for one in told["topics"]] == [topic]
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:-1").split()[-1] == "3"
    assert kcat(bootstrap, "-C", "-t", topic, "-o", "-2", "-e", "-q") == "b\nc\n"


@pytest.mark.long
def test_group(bootstrap: str, fresh: Fresh) -> None:
    topic, group = fresh("topic"), fresh("group")
    kcat(bootstrap, "-P", "-t", topic, "-X", "enable.idempotence=true", given=LINES)
    read = ("-G", group, "-q", "-X", "auto.offset.reset=earliest", topic)
    assert kcat(bootstrap, "-c", "100", *read) + kcat(bootstrap, "-c", "200", *read) == LINES
