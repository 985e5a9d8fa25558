"""`leafcuttr demo`: what it prints, how it ends, what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.broker_process import clean_environ

DEMO = (sys.executable, "-m", "leafcuttr", "demo")


def test_it_compares_every_record_and_cleans_up(tmp_path: Path) -> None:
    environ = clean_environ({"TMPDIR": str(tmp_path), "KAFKA_LISTENERS": "PLAINTEXT://nowhere.invalid:1"})
    done = subprocess.run(DEMO, env=environ, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
    assert "200,000 records by a consumer group, every byte equal" in done.stdout
    for words in (
        "records/s",
        "MB/s",
        "ms from start to the first acknowledgement",
        "MB resident",
        "kcat",
        "python",
    ):
        assert words in done.stdout
    assert list(tmp_path.iterdir()) == [], "the broker's directory is gone"


@pytest.mark.long
def test_json() -> None:
    done = subprocess.run(
        [*DEMO, "--json", "--records", "2000"],
        env=clean_environ(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0
    figures = json.loads(done.stdout)
    assert figures["equal"] is True
    assert figures["records"] == 2000
    assert figures["first_ack_ms"] > 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_keep_leaves_it_serving_until_a_signal(how: signal.Signals) -> None:
    from confluent_kafka.admin import AdminClient

    command = [*DEMO, "--keep", "--records", "1000"]
    with subprocess.Popen(command, env=clean_environ(), stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        lines = []
        for line in demo.stdout:
            lines.append(line)
            if line.startswith("serving on"):
                break
        address = lines[-1].split()[2]
        found = re.search(r"process (\d+), (\S+),", lines[0])
        assert found is not None
        assert found[2] == address
        client = AdminClient({"bootstrap.servers": address})
        assert "demo" in client.list_topics(timeout=60).topics
        demo.send_signal(how)
        assert demo.wait(120) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(found[1]), 0)
